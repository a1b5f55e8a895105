import { afterAll, describe, expect, test } from 'vitest';
import { openSpecProxy } from '../../../tests/support/proxies/spec-proxy.ts';
import { openService } from '../../../tests/support/running-api.ts';
import { testStream } from '../../../tests/support/running-ingest.ts';
import {
  against,
  btc,
  nowMs,
  openReadingSample,
  type RunOptions,
  signerSets,
  third,
} from '../reading-sample.fixture.ts';

const { service, alice, run, close } = await openReadingSample();
afterAll(close);

describe('doctor', () => {
  const doctor = async (options: RunOptions & { url?: string } = {}) => {
    const { code, stdout } = await run(['doctor', options.url ?? service.url, '--json'], options);
    const { ok, steps } = JSON.parse(stdout) as {
      ok: boolean;
      steps: { step: string; result: string; text: string; fix?: string }[];
    };
    const marks = steps.map(({ result }) => ({ passed: '✓', failed: '✗', skipped: '–' })[result]).join('');
    return { code, ok, marks, step: (name: string) => steps.find(({ step }) => step === name) };
  };

  test('a server with everything in order', async () => {
    expect(await run(['doctor', service.url])).toEqual({
      code: 0,
      stderr: '',
      stdout: `✓ reachable    HOST answered in 0 ms.
✓ sealpost     GET /time returned a Sealpost response.
✓ clock        This clock is 0 ms ahead of the server’s (± 0 ms); the limit is 5000 ms.
✓ catalog      The catalog lists 5 public streams.
✓ credentials  Using SEALPOST_USER_ID and SEALPOST_SECRET.
✓ accepted     The server accepts the signature.
✓ streams      5 streams readable, 1 of them hidden: BTC/USD-Streams-CexPrice, ETH/USD-Streams-CexPrice, NEW/USD-Streams-CexPrice and 2 more.
✓ fresh        The latest report of BTC/USD-Streams-CexPrice is 00:11 old.
✓ signatures   The report is signed by ${[...signerSets.values()].map(({ f }) => f + 1)} signers of /signers.json.
`,
    });
  });

  test('without URL it is the server of SEALPOST_URL; the scheme may be missing', async () => {
    const [port, { userId, secret }] = [new URL(service.url).port, alice];
    const env = { SEALPOST_URL: `localhost:${port}`, SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret };
    expect((await run(['doctor'], { env })).code).toBe(0);
    expect((await run(['doctor', `localhost:${port}`])).code).toBe(0);
  });

  test('no server, and another server: the rest is not checked', async () => {
    const url = await against(
      () => {},
      async (address) => address,
    );
    const closed = await doctor({ url });
    expect([closed.code, closed.marks]).toEqual([1, '✗–––✓––––']);
    expect(closed.step('reachable')?.fix).toBe('Start the server, or check host and port.');
    for (const form of [[], ['--json']])
      expect((await run(['doctor', url, ...form], { isUnread: true })).code, 'its reader has left').toBe(1);
    const other = await against(
      (_, response) => response.end('<html>'),
      (address) => doctor({ url: address }),
    );
    expect(other.marks).toBe('✓✗––✓––––');
    const missing = await against(
      (_, response) => response.writeHead(404).end('<html>'),
      (address) => doctor({ url: address }),
    );
    expect(missing.marks).toBe('✓✗––✓––––');
  });

  test('a server without our extensions is checked by what it has', async () => {
    const proxy = await openSpecProxy(() => service.url, { nowMs: () => nowMs });
    const found = await doctor({ url: proxy.url });
    await proxy.close();
    expect([found.code, found.marks]).toEqual([1, '✓✓✓✓✓✓✓✓✗']);
    expect(found.step('sealpost')?.text).toBe('The server has the same API, without Sealpost extensions.');
    expect(found.step('clock')?.text).toContain('(± 500 ms); the limit is 5000 ms');
    expect(found.step('signatures')).toMatchObject({
      text: 'The server does not publish signer sets.',
      fix: 'Use: sealpost report verify --signers FILE.',
    });
  });

  test('an interruption ends it with its exit code', async () => {
    const controller = new AbortController();
    const stopped = await against(
      () => controller.abort('SIGINT'),
      (url) => run(['doctor', url], { interruption: controller.signal }),
    );
    expect(stopped).toEqual({ code: 130, stdout: '', stderr: 'error: Interrupted.\n' });
  });

  test('a wrong clock is measured, and reported even if the client corrects it', async () => {
    const late = await doctor({ nowMs: nowMs - 8_000 });
    expect([late.code, late.marks]).toEqual([1, '✓✓✗✓✓✗✓✓✓']);
    expect(late.step('clock')?.text).toBe('This clock is 8000 ms behind the server’s (± 0 ms); the limit is 5000 ms.');
    expect(late.step('accepted')).toMatchObject({
      text: 'The server rejects this clock’s time (clock_skew) and accepts its own.',
      fix: 'Synchronize this clock, for example with NTP.',
    });
    expect((await doctor({ nowMs: nowMs + 4_000 })).marks).toBe('✓✓✓✓✓✓✓✓✓');
  });

  test('credentials: none, wrong, and of an account that may read nothing', async () => {
    const none = await doctor({ env: {} });
    expect([none.marks, none.step('credentials')?.fix]).toEqual([
      '✓✓✓✓✗––––',
      'No credentials. Save them with: sealpost login URL. Or set SEALPOST_USER_ID and SEALPOST_SECRET.',
    ]);
    const wrong = await doctor({ as: { ...alice, secret: 'another' } });
    expect([wrong.marks, wrong.step('accepted')?.fix]).toEqual([
      '✓✓✓✓✓✗–––',
      'Check the user ID and secret; the account may be disabled.',
    ]);
    const empty = await doctor({ as: await service.addAccount([]) });
    expect([empty.marks, empty.step('streams')?.fix]).toEqual(['✓✓✓✓✓✓✗––', 'Ask the server’s operator for access.']);
  });

  test('an old report is not fresh, and is still verified', async () => {
    const later = await openService([testStream(btc)], signerSets, () => nowMs + 600_000);
    try {
      await later.append([third]);
      const as = await later.addAccount(['public']);
      const old = await doctor({ url: later.url, as, nowMs: nowMs + 600_000 });
      expect([old.code, old.marks, old.step('fresh')?.text]).toEqual([
        1,
        '✓✓✓✓✓✓✓✗✓',
        expect.stringContaining('is 10:11 old, more than 01:00.'),
      ]);
    } finally {
      await later.close();
    }
  });
});
