import { afterAll, describe, expect, test } from 'vitest';
import { against, btc, many, now, openReadingSample } from '../reading-sample.fixture.ts';

const { service, alice, run, close } = await openReadingSample();
afterAll(close);

const candles = (...args: string[]) => run(['candles', ...args]);

describe('candles', () => {
  test('people get a table of exact prices, by pair', async () => {
    const { code, stdout, stderr } = await candles('btc/usd', '--from', '-2m');
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout.split('\n')[0]).toMatch(/^from \(UTC\) +open +high +low +close +reports$/);
    expect(stdout).toMatch(
      /^2025-11-15T09:45:00Z +97012\.34567890123456789 +97012\.34567890123456789 +97000 +97000 +2$/m,
    );
    expect(stdout).toMatch(/-0\.000000000000000001 +1$/m);
  });

  test('csv has exact decimals, or integers with --raw; ndjson has integers, and --json is ndjson', async () => {
    const csv = await candles(btc, '--from', '-2m', '--format', 'csv');
    const minute = now - (now % 60) - 60;
    expect(csv.stdout.split('\n')[0]).toBe('timestamp,open,high,low,close,reports');
    expect(csv.stdout).toContain(`${minute},97012.34567890123456789,97012.34567890123456789,97000,97000,2\n`);
    const raw = await candles(btc, '--from', '-2m', '--format', 'csv', '--raw');
    expect(raw.stdout).toContain(`${minute},97012345678901234567890,97012345678901234567890,97000000000000000000000,`);
    const lines = (await candles(btc, '--from', '-2m', '--json')).stdout.trim().split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      feedID: btc,
      timestamp: minute,
      low: '97000000000000000000000',
      reports: 2,
    });
    expect((await candles(btc, '--from', '-2m', '--format', 'ndjson')).stdout.trim().split('\n')).toEqual(lines);
  });

  test('nothing is requested for the time after the newest report', async () => {
    const { code, stdout } = await candles(btc, '--from', '-2m', '--to', '+9000d', '--resolution', '1s', '--json');
    expect([code, stdout]).toEqual([0, (await candles(btc, '--from', '-2m', '--resolution', '1s', '--json')).stdout]);
  });

  test('a range with more candles than one request returns is read in several, none twice', async () => {
    const rows = (await candles(many, '--from', '-29d', '--format', 'csv')).stdout.trim().split('\n').slice(1);
    const reports = rows.map((row) => Number(row.split(',').at(-1)));
    expect([rows.length, reports.reduce((sum, one) => sum + one, 0)]).toEqual([new Set(rows).size, 1_200]);
    const hours = (await candles(many, '--from', '-29d', '--resolution', '1h', '--format', 'csv')).stdout
      .trim()
      .split('\n');
    expect(hours.length).toBeLessThan(4);
  });

  test('candles of a second, 15 minutes and 4 hours hold the same prices', async () => {
    const rows = async (resolution: string) => {
      const { stdout } = await candles(btc, '--from', '-1m', '--resolution', resolution, '--format', 'csv');
      return stdout.trim().split('\n').slice(1);
    };
    expect(await rows('1s')).toEqual([
      `${now - 51},97012.34567890123456789,97012.34567890123456789,97012.34567890123456789,97012.34567890123456789,1`,
      `${now - 41},97000,97000,97000,97000,1`,
      `${now - 11},-0.000000000000000001,-0.000000000000000001,-0.000000000000000001,-0.000000000000000001,1`,
    ]);
    const whole = '97012.34567890123456789,97012.34567890123456789,-0.000000000000000001,-0.000000000000000001,3';
    expect(await rows('15m')).toEqual([`${now - (now % 900)},${whole}`]);
    expect(await rows('4h')).toEqual([`${now - (now % 14_400)},${whole}`]);
  });

  test('an empty range is exit code 1; wrong arguments are 2', async () => {
    expect(await candles(btc, '--from', '-10d', '--to', '-9d')).toEqual({
      code: 1,
      stdout: '',
      stderr: `error: ${btc} has no candles in this time range: no reports, or none whose fields the server knows.\n`,
    });
    for (const wrong of [
      ['--resolution', '2m'],
      ['--format', 'xml'],
      ['--format', 'csv', '--json'],
      ['--raw'],
      ['--from', 'x'],
    ])
      expect((await candles(btc, ...wrong)).code, wrong.join(' ')).toBe(2);
  });
});

describe('stream list --url', () => {
  const names = (text: string): readonly string[] => JSON.parse(text).feeds.map(({ name }: { name: string }) => name);

  test('a user sees the hidden streams that it may read, everyone else the public ones', async () => {
    const mine = await run(['stream', 'list', '--url', service.url, '--json']);
    expect(names(mine.stdout)).toContain('NEW/USD-Streams-CexPrice');
    const anyone = await run(['stream', 'list', '--url', service.url.replace('http://', ''), '--json'], { env: {} });
    expect(names(anyone.stdout)).toEqual(names(mine.stdout).filter((name) => !name.startsWith('NEW')));
    const table = await run(['stream', 'list', '--url', service.url]);
    expect(table.stdout).toMatch(/^BTC\/USD-Streams-CexPrice +0x0003\S+ +testnet +live$/m);
    expect(table.stdout).toMatch(/\n6 streams\.\n$/);
  });

  test('a catalog of another server may have only feed ID, pair and status', async () => {
    const entry = { feedId: btc, baseAsset: 'BTC', quoteAsset: 'USD', status: 'live' };
    const listed = await against(
      (_, response) => void response.end(JSON.stringify({ feeds: [entry] })),
      (url) => run(['stream', 'list', '--url', url], { env: {} }),
    );
    expect([listed.stderr, listed.code]).toEqual(['', 0]);
    expect(listed.stdout).toMatch(/^BTC\/USD +0x0003\S+ +live$/m);
  });

  test('a wrong secret is reported, and --store is rejected', async () => {
    const wrong = await run(['stream', 'list', '--url', service.url], { as: { ...alice, secret: 'wrong' } });
    expect([wrong.code, wrong.stderr.startsWith('error: unauthorized')]).toEqual([1, true]);
    expect((await run(['stream', 'list', '--url', service.url, '--store', 'x'])).code).toBe(2);
  });
});
