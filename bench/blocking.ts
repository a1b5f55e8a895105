// Every route with the most expensive arguments that it allows, on a large store: for how long the event loop is blocked at once, in CPU time of its
// thread, and the longest collection of garbage, which may be in it. Medians of several requests.
import type { ChildProcess } from 'node:child_process';
import { signRequest } from '@sealpost/protocol';
import { type Measurement, median } from './measure.ts';
import { startProgram } from './processes/target.ts';
import type { Blocked, BlockingRequest, BlockingWorld } from './programs/blocking-target.ts';
import { rekeyedReports } from './rekeyed-reports.ts';

const rounds = 9;
const daySeconds = 86_400;

type Target = BlockingWorld & { readonly child: ChildProcess };

const tell = ({ child }: Target, request: BlockingRequest): Promise<Blocked> =>
  new Promise((resolve) => {
    child.once('message', (told) => resolve(told as Blocked));
    child.send(request);
  });

/** One thing to ask for; resolves with its bytes when all of it has come. */
type Asked = { readonly name: string; readonly ask: (target: Target) => Promise<number> };

const fetchAll = async (url: string, init: RequestInit = {}): Promise<number> => {
  const answer = await fetch(url, init);
  const bytes = (await answer.arrayBuffer()).byteLength;
  if (answer.status >= 400 && !url.endsWith('/readyz'))
    throw new Error(`${url.slice(0, 100)} answered ${answer.status}`);
  return bytes;
};

const signed = ({ userId, secret }: Target, target: string): Record<string, string> => ({
  ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret),
});

const read = (name: string, targetOf: (target: Target) => string, headers: Record<string, string> = {}): Asked => ({
  name,
  ask: (target) => {
    const path = targetOf(target);
    return fetchAll(`${target.url}${path}`, { headers: { ...signed(target, path), ...headers } });
  },
});

const open = (name: string, path: string): Asked => ({ name, ask: ({ url }) => fetchAll(`${url}${path}`) });

/** Resumes a stream and reads until it has the newest report. */
const resume = (name: string, feedIdsOf: (target: Target) => readonly string[], forMs: number): Asked => ({
  name,
  ask: async (target) => {
    const path = `/api/v1/reports/stream?feedIDs=${feedIdsOf(target).join(',')}`;
    const headers = { ...signed(target, path), 'Last-Event-ID': target.lastEventId };
    const signal = AbortSignal.timeout(forMs);
    let bytes = 0;
    try {
      const { body } = await fetch(`${target.url}${path}`, { headers, signal });
      for await (const chunk of body ?? []) bytes += chunk.length;
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    return bytes;
  },
});

const candles = (resolution: number) => (target: Target) => {
  const [, feedId] = target.feedIds;
  const from = Math.max(target.now - 1_439 * resolution, target.now - 60 * daySeconds);
  return `/api/v1/reports/candles?feedID=${feedId}&resolution=${resolution}&from=${from}&to=${target.now - 1}`;
};

/** A day of 100 streams, as the explorer's list asks for it, or in more and finer buckets. */
const candlesMany = (resolution: number, streams: number) => (target: Target) => {
  const from = target.now - daySeconds;
  return `/api/v1/reports/candles/bulk?feedIDs=${target.feedIds.slice(2, 2 + streams).join(',')}&resolution=${resolution}&from=${from}&to=${target.now - 1}`;
};

const many = ({ feedIds }: Target): string => feedIds.slice(2, 232).join(',');

const batch = ({ now, feedIds }: Target): string =>
  [...rekeyedReports(now - 4_096, 4_096, feedIds.slice(0, 1))]
    .flat()
    .map(
      ({ feedId, fullReport }) =>
        `{"feedID":"${feedId}","fullReport":"0x${Buffer.from(fullReport).toString('hex')}"}\n`,
    )
    .join('');

const asked: readonly Asked[] = [
  { name: 'nothing, for 100 ms', ask: () => new Promise((resolve) => setTimeout(resolve, 100, 0)) },
  read('latest', ({ feedIds }) => `/api/v1/reports/latest?feedID=${feedIds[0]}`),
  read('latest of 230 streams', (target) => `/api/v1/reports/latest?feedIDs=${many(target)}`),
  read('report at a moment', ({ feedIds, now }) => `/api/v1/reports?feedID=${feedIds[0]}&timestamp=${now - 40_000}`),
  read('bulk of 230 streams', (target) => `/api/v1/reports/bulk?feedIDs=${many(target)}&timestamp=${target.now - 50}`),
  read(
    'page of 1,000 reports, cold',
    ({ feedIds, now }) =>
      `/api/v1/reports/page?feedID=${feedIds[0]}&startTimestamp=${now - 2_000 - Math.floor(Math.random() * 80_000)}&limit=1000`,
  ),
  read(
    'page of 1,000 reports, gzip',
    ({ feedIds, now }) =>
      `/api/v1/reports/page?feedID=${feedIds[0]}&startTimestamp=${now - 2_000 - Math.floor(Math.random() * 80_000)}&limit=1000`,
    { 'Accept-Encoding': 'gzip' },
  ),
  read(
    'coverage of a day, 86,400 reports',
    ({ feedIds, now }) => `/api/v1/reports/coverage?feedID=${feedIds[0]}&from=${now - daySeconds}&to=${now - 1}`,
  ),
  read(
    'coverage of 100 streams, a day',
    ({ feedIds, now }) =>
      `/api/v1/reports/coverage/bulk?feedIDs=${feedIds.slice(0, 100).join(',')}&from=${now - daySeconds}&to=${now - 1}`,
  ),
  read('candles, 1,440 of a minute', candles(60)),
  read('candles, 1,440 of 5 minutes', candles(300)),
  read('candles, 1,440 of an hour', candles(3_600)),
  read('candles, 60 of a day', candles(daySeconds)),
  read('candles of 100 streams, a day of hours', candlesMany(3_600, 100)),
  read('candles of 100 streams, a day of 15 minutes', candlesMany(900, 100)),
  read('discovery of 2,000 streams', () => '/api/v1/discovery'),
  open('discovery of 2,000 streams, anonymous', '/api/v1/discovery'),
  read('feeds of 2,000 streams', () => '/api/v1/feeds'),
  resume('event stream, 100,000 positions back, all of another stream', ({ feedIds }) => feedIds.slice(1, 2), 3_000),
  resume('event stream, 100,000 positions back, 86,400 reports', ({ feedIds }) => feedIds.slice(0, 1), 3_000),
  open('status.json', '/status.json'),
  open('signers.json', '/signers.json'),
  open('openapi.json', '/openapi.json'),
  open('docs', '/docs'),
  open('time', '/time'),
  { name: 'metrics', ask: ({ opsUrl }) => fetchAll(`${opsUrl}/metrics`) },
  { name: 'readyz', ask: ({ opsUrl }) => fetchAll(`${opsUrl}/readyz`) },
  {
    name: 'ingest of 4,096 lines, all rejected',
    ask: (target) =>
      fetchAll(`${target.opsUrl}/ingest`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${target.ingestToken}`, 'Content-Type': 'application/x-ndjson' },
        body: batch(target),
      }),
  },
];

const measure = async (target: Target, { name, ask }: Asked): Promise<Measurement> => {
  const blocked: number[] = [];
  const collecting: number[] = [];
  const took: number[] = [];
  let bytes = 0;
  for (let round = 0; round <= rounds; round++) {
    await tell(target, 'begin');
    const startedMs = performance.now();
    bytes = await ask(target);
    const ms = performance.now() - startedMs;
    const end = await tell(target, 'end');
    if (round === 0) continue; // everything is compiled and looked up for the first time
    blocked.push(end.longest);
    collecting.push(end.collecting);
    took.push(ms);
  }
  const note = `garbage ${median(collecting).toFixed(1)} ms, whole answer ${median(took).toFixed(0)} ms, ${(bytes / 1_000).toFixed(0)} KB`;
  return { name, value: median(blocked), unit: 'ms blocked', note };
};

/** `--only TEXT` measures the rows whose names have it. */
export const benchBlocking = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
  if (!('threadCpuUsage' in process))
    throw new Error('This workload needs Node 24: older releases count no CPU by thread.');
  const target = await startProgram<BlockingWorld>('blocking-target');
  const figures: Measurement[] = [];
  try {
    for (const one of asked)
      if (only === undefined || one.name.includes(only)) figures.push(await measure(target, one));
  } finally {
    target.child.kill('SIGTERM');
  }
  return figures;
};
