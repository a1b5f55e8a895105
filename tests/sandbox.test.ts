// The real program `sealpost sandbox`: started, read from, controlled, recorded and started again from the record.
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  decodeFullReport,
  decodeReportBody,
  encodeReportBody,
  parseSignerSets,
  verifyReport,
} from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { inFull } from './support/full-count.ts';
import { fetchSigned, type Program, startCommand } from './support/real-program.ts';
import { secondStream } from './support/signed-reports.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-sandbox-test-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Sandbox = {
  readonly url: string;
  readonly opsUrl: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly string[];
  readonly accounts: Readonly<Record<string, { readonly userId: string; readonly secret: string }>>;
  readonly program: Program;
};

const start = async (...args: string[]): Promise<Sandbox> => {
  const env = { SEALPOST_EXPLORER: 'off', TMPDIR: folder };
  const program = startCommand(
    ['sandbox', '--json', '--listen', '127.0.0.1:0', '--requests-per-second', '0', ...args],
    folder,
    env,
  );
  const [line] = await program.printed(/^\{"url".*\}$/m);
  return { ...JSON.parse(line), program };
};
const stop = async ({ program }: Sandbox, signal: NodeJS.Signals = 'SIGINT'): Promise<number | null> => {
  program.child.kill(signal);
  return (await program.finished).code;
};
/** An event by the private listener, as `sealpost sandbox set` sends it. */
const post = async ({ opsUrl }: Pick<Sandbox, 'opsUrl'>, event: object) => {
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(`${opsUrl}/sandbox/events`, { method: 'POST', headers, body: JSON.stringify(event) });
  return [answer.status, await answer.json()] as const;
};
/** A command that ends, in this process. */
const sealpost = (...args: string[]) => runCommand(args, { cwd: folder });
const reportsOf = async (sandbox: Sandbox): Promise<readonly string[]> => {
  const answers = await Promise.all(
    sandbox.feedIds.map((feedId) =>
      fetchSigned(sandbox.url, `/api/v1/reports/page?feedID=${feedId}&startTimestamp=1773412170&limit=500`, sandbox),
    ),
  );
  return Promise.all(answers.map((answer) => answer.text()));
};

test('sandbox: what is set by flag and at runtime is served, shown, and reproduced by its record to the byte', async () => {
  const first = await start(
    '--at',
    '2026-03-13T14:30:00Z',
    '--paused',
    '--past',
    '30s',
    '--streams',
    'ETH/USD,USDC/USD',
    '--seed',
    'mine',
  );
  const control = (...args: string[]) => sealpost('sandbox', ...args, '--url', first.opsUrl);
  expect((await control('set', 'step', '10s')).stdout).toContain('time        2026-03-13T14:30:10.000Z');
  await control('set', 'level', '4200.55', 'streams=ETH/USD');
  for (const event of [{ type: 'depeg', price: 0.87, streams: 'USDC/USD' }, { type: 'rotate' }])
    expect((await post(first, event))[0]).toBe(200);
  const wrong = await control('set', 'jump', 'streams=ETH/USD');
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    'error: percent: is missing, expected a number from -99.9 to 10000.\n',
  ]);
  await post(first, { type: 'step', by: '20s' });
  const shown = await control('show');
  expect(shown.stdout).toContain('2026-03-13T14:30:11Z level streams=ETH/USD price=4200.55');
  expect(shown.stdout).toMatch(/reports {5}\d+ since the start\n/);
  expect((await fetch(`${first.opsUrl}/readyz`)).status).toBe(200);
  await control('set', 'fault', 'latency=1ms,route=origins');
  expect(await (await fetchSigned(first.url, '/status.json', first)).json()).toMatchObject({
    ready: true,
    ingestLagSeconds: 0,
    sandbox: { timeMs: 1_773_412_230_000, speed: 1, paused: true, faults: ['latency=1ms,route=origins'] },
  });
  const recordFile = join(folder, 'record.json');
  expect((await control('record', '--out', recordFile)).code).toBe(0);
  const reports = await reportsOf(first);
  expect(await stop(first)).toBe(0);
  expect(readdirSync(folder).filter((name) => name.startsWith('sealpost-sandbox-'))).toEqual([]); // its folder is gone

  const again = await start('--scenario', recordFile, '--paused', '--dir', 'kept');
  const second = await sealpost('sandbox', '--listen', '127.0.0.1:0', '--dir', 'kept');
  expect([second.code, second.stderr]).toEqual([3, expect.stringContaining('A sandbox is running in')]);
  await post(again, { type: 'step', by: '30s' });
  expect([again.userId, again.secret]).toEqual([first.userId, first.secret]);
  expect(await reportsOf(again)).toEqual(reports);
  expect(await stop(again)).toBe(0);
  expect(existsSync(join(folder, 'kept/store'))).toBe(true);
});

test('sandbox: recorded reports are replayed from the start on, signed again', async () => {
  const { signerSet, sign } = await createNetwork({ seed: 'elsewhere' });
  const feedId = secondStream(7);
  const lines = [100, 101, 102].map((observationsTimestamp) => {
    const times = {
      validFromTimestamp: observationsTimestamp,
      observationsTimestamp,
      expiresAt: observationsTimestamp + 99,
    };
    const fees = { nativeFee: 1n, linkFee: 2n };
    const body = encodeReportBody({ version: 3, feedId, ...times, ...fees, price: 5n, bid: 4n, ask: 6n });
    return JSON.stringify({ fullReport: sign(body, 1) });
  });
  writeFileSync(join(folder, 'reports.ndjson'), `${lines.join('\n')}\n`);
  const sandbox = await start(
    '--replay',
    'reports.ndjson',
    '--at',
    '2026-03-13T14:30:00Z',
    '--paused',
    '--oracles',
    '7',
    '--faulty',
    '2',
  );
  expect(sandbox.feedIds).toEqual([feedId]);
  expect(await post(sandbox, { type: 'step', by: '5s' })).toMatchObject([200, { state: { reports: { stored: 3 } } }]);
  const answer = await fetchSigned(sandbox.url, `/api/v1/reports/latest?feedID=${feedId}`, sandbox);
  const { report } = (await answer.json()) as { report: { observationsTimestamp: number; fullReport: `0x${string}` } };
  expect(report.observationsTimestamp).toBe(1_773_412_203);
  const { body, context, signatures } = decodeFullReport(report.fullReport);
  expect(signatures).toHaveLength(3);
  expect(decodeReportBody(body)).toMatchObject({ price: 5n, expiresAt: 1_773_412_203 + 99 });
  expect(context.configDigest).not.toBe(signerSet.configDigest);
  const price = await sealpost('sandbox', 'set', 'jump', '5', `streams=${feedId}`, '--url', sandbox.opsUrl);
  expect(price.stderr).toContain('type: is "jump", which replayed reports cannot have');
  expect(await stop(sandbox, 'SIGHUP')).toBe(0); // as when its terminal is closed
  expect(readdirSync(folder).filter((name) => name.startsWith('sealpost-sandbox-'))).toEqual([]);
});

test('sandbox: POST /sandbox/events pushes exact reports, which are served as they were answered', async () => {
  const where = ['--at', '2026-03-13T14:30:00Z', '--paused', '--past', '0', '--streams', 'ETH/USD,AAPL/USD'];
  const sandbox = await start(...where, '--listen', 'localhost:0');
  expect([new URL(sandbox.url).hostname, new URL(sandbox.opsUrl).hostname]).toEqual(['localhost', '127.0.0.1']);
  const read = async (query: string) => (await fetchSigned(sandbox.url, `/api/v1/reports${query}`, sandbox)).json();
  const t0 = 1_773_412_200;
  const push = { type: 'push', stream: 'ETH/USD', price: '4200.123456789012345678' };
  const [status, { events, state }] = await post(sandbox, [
    push,
    { ...push, price: '4201', bid: '4200.5', ask: '4201.5' },
  ]);
  expect([status, state.time, events.map((event: { time: string }) => event.time)]).toEqual([
    200,
    '2026-03-13T14:30:02.000Z',
    ['2026-03-13T14:30:01Z', '2026-03-13T14:30:02Z'],
  ]);
  const [feedId] = sandbox.feedIds.filter((id) => id === events[0].report.feedID);
  expect(await read(`?feedID=${feedId}&timestamp=${t0 + 1}`)).toEqual({ report: events[0].report });
  expect(await read(`/latest?feedID=${feedId}`)).toEqual({ report: events[1].report });
  const bodyOf = (report: { fullReport: `0x${string}` }) => decodeReportBody(decodeFullReport(report.fullReport).body);
  expect(bodyOf(events[0].report)).toMatchObject({ price: 4_200_123456789012345678n, observationsTimestamp: t0 + 1 });
  expect(bodyOf(events[1].report)).toMatchObject({ bid: 4_200_500000000000000000n, ask: 4_201_500000000000000000n });
  await post(sandbox, { type: 'step', by: '5s' });
  expect(await read(`/latest?feedID=${feedId}`)).toEqual({ report: events[1].report }); // no simulated report follows
  const late = { ...push, price: '4199', observedAt: t0 + 6, validFrom: t0 + 4 };
  const [, lateAnswer] = await post(sandbox, late);
  expect(bodyOf(lateAnswer.events[0].report)).toMatchObject({
    validFromTimestamp: t0 + 4,
    observationsTimestamp: t0 + 6,
  });
  expect(await post(sandbox, { ...late, price: '1' })).toMatchObject([
    400,
    { code: 'malformed_argument', field: 'observedAt', error: expect.stringContaining('was rejected') },
  ]);
  const stock = { type: 'push', stream: 'AAPL/USD', price: '190.5' };
  const [, stockAnswer] = await post(sandbox, { ...stock, fields: { marketStatus: 1 } });
  expect(bodyOf(stockAnswer.events[0].report)).toMatchObject({ marketStatus: 1 });
  expect(await post(sandbox, { ...stock, fields: { volume: 1 } })).toMatchObject([400, { field: 'fields.volume' }]);
  expect(await post(sandbox, { ...push, price: 'much' })).toMatchObject([
    400,
    {
      field: 'price',
      error: 'price: is "much", expected a decimal as text such as "4200.55" with at most 18 decimals.',
    },
  ]);
  expect(await post(sandbox, { ...push, stream: 'DOGE/USD' })).toMatchObject([400, { field: 'stream' }]);
  const said = await sealpost(
    'sandbox',
    'set',
    'push',
    '4300.5',
    'stream=ETH/USD',
    'fields={"nativeFee":"1"}',
    '--url',
    sandbox.opsUrl,
  );
  expect(said.stdout).toContain('push stream=ETH/USD price=4300.5 fields={"nativeFee":"1"}');
  const recordFile = join(folder, 'pushed.json');
  await sealpost('sandbox', 'record', '--out', recordFile, '--url', sandbox.opsUrl);
  const reports = await reportsOf(sandbox);
  expect(await stop(sandbox)).toBe(0);
  const again = await start('--scenario', recordFile, '--paused');
  await post(again, { type: 'step', by: '20s' });
  await post(again, { type: 'clear' });
  expect((await reportsOf(again))[0]).toBe(reports[0]);
  await post(again, { type: 'step', by: '5s' });
  expect((await reportsOf(again))[0]).not.toBe(reports[0]); // simulated again
  expect(await stop(again)).toBe(0);
});

inFull(
  'sandbox: --oracles and --faulty make the network as large as a main one, before and after a rotation',
  async () => {
    const size = ['--oracles', '16', '--faulty', '5'];
    const sandbox = await start('--at', '2026-03-13T14:30:00Z', '--paused', '--streams', 'ETH/USD', ...size);
    await sealpost('sandbox', 'set', 'rotate', '--url', sandbox.opsUrl);
    await sealpost('sandbox', 'set', 'push', '4200.55', 'stream=ETH/USD', '--url', sandbox.opsUrl);
    const signers = parseSignerSets(await (await fetch(`${sandbox.url}/signers.json`)).json());
    expect([...signers.values()].map(({ f, addresses }) => [f, addresses.length])).toEqual([
      [5, 16],
      [5, 16],
    ]);
    const [page = ''] = await reportsOf(sandbox);
    const { reports } = JSON.parse(page) as { reports: readonly { fullReport: `0x${string}` }[] };
    const verdicts = reports.map(({ fullReport }) => verifyReport(decodeFullReport(fullReport), signers));
    expect(new Set(verdicts.map((verdict) => verdict.ok && verdict.signers.length))).toEqual(new Set([6]));
    expect(new Set(verdicts.map((verdict) => verdict.ok && verdict.signerSet.configDigest)).size).toBe(2);
    expect(await stop(sandbox)).toBe(0);
    const bad = await sealpost('sandbox', '--listen', '127.0.0.1:0', '--oracles', '16', '--faulty', '6');
    expect([bad.code, bad.stderr]).toEqual([
      2,
      'error: --faulty has the value "6", expected a whole number from 0 to 5.\n',
    ]);
  },
);

test('sandbox: --prices signs exactly the prices of a CSV file at their times, and nothing else', async () => {
  const file = join(folder, 'prices.csv');
  const rows = [
    '2026-03-13T14:30:00Z,ETH/USD,4200.5',
    '2026-03-13T14:30:02Z,FOO/USD,0.1',
    '2026-03-13T14:30:04Z,ETH/USD,4199',
  ];
  writeFileSync(file, `time,stream,price\n${rows.join('\n')}\n`);
  const sandbox = await start(
    '--prices',
    file,
    '--paused',
    '--account',
    'alice=FOO/USD',
    '--account',
    'bob=public',
    '--ops-listen',
    'localhost:0',
  );
  expect([new URL(sandbox.url).hostname, new URL(sandbox.opsUrl).hostname]).toEqual(['127.0.0.1', 'localhost']);
  expect(sandbox.feedIds).toHaveLength(2);
  expect((await sealpost('sandbox', 'set', 'step', '20s', '--url', sandbox.opsUrl)).stdout).toContain('14:30:20.000Z');
  const state = (await (await fetch(`${sandbox.opsUrl}/sandbox`)).json()) as {
    streams: readonly string[];
    problems: unknown;
  };
  expect([state.streams.map((name) => name.split('-')[0]), state.problems]).toEqual([['ETH/USD', 'FOO/USD'], []]);
  const answer = await fetchSigned(
    sandbox.url,
    `/api/v1/reports/page?feedID=${sandbox.feedIds[0]}&startTimestamp=1773412170&limit=500`,
    sandbox,
  );
  const { reports } = (await answer.json()) as {
    reports: readonly { fullReport: `0x${string}`; observationsTimestamp: number }[];
  };
  const priceOf = ({ fullReport }: (typeof reports)[number]) =>
    Object(decodeReportBody(decodeFullReport(fullReport).body)).price;
  expect(reports.map((report) => [report.observationsTimestamp, priceOf(report)])).toEqual([
    [1_773_412_200, 4_200_500000000000000000n],
    [1_773_412_204, 4_199_000000000000000000n],
  ]);
  const { alice, bob } = sandbox.accounts;
  const path = `/api/v1/reports/latest?feedID=${sandbox.feedIds[0]}`; // of ETH/USD
  const statuses = [alice, bob].map(
    async (account) => account && (await fetchSigned(sandbox.url, path, account)).status,
  );
  expect(await Promise.all(statuses)).toEqual([401, 200]);
  expect(await stop(sandbox)).toBe(0);
  writeFileSync(file, 'time,stream,price\n0s,ETH/USD,high\n');
  const bad = await sealpost('sandbox', '--listen', '127.0.0.1:0', '--prices', file);
  expect([bad.code, bad.stderr]).toEqual([
    2,
    expect.stringContaining(`${file}: line 2: price is "high", expected a decimal`),
  ]);
});

test('sandbox: a folder that is not a sandbox’s, and a scenario with an error, start nothing', async () => {
  writeFileSync(join(folder, 'bad.json'), '{"events":[{"at":"1m","type":"jump","streams":"DOGE/USD","percent":1}]}');
  const bad = await sealpost('sandbox', '--listen', '127.0.0.1:0', '--scenario', join(folder, 'bad.json'));
  expect([bad.code, bad.stderr]).toEqual([
    2,
    expect.stringContaining('events[0].streams: No stream is named "DOGE/USD"'),
  ]);
  writeFileSync(join(folder, 'sandbox.json'), '{"name":"a scenario","events":[]}'); // named like the marker of a sandbox's folder
  const taken = await sealpost('sandbox', '--listen', '127.0.0.1:0', '--dir', folder);
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining("is not empty, and not a sandbox's folder")]);
});
