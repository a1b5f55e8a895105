// Every route with the most expensive arguments that it allows, on a large store: for how long the event loop is blocked at once, in CPU time of its
// thread, and the longest collection of garbage, which may be in it. Medians of several requests.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { limits, signRequest } from '@sealpost/protocol';
import { WebSocket } from 'ws';
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

/** Answers that say what is missing. */
const isMiss = (status: number, url: string): boolean =>
  url.endsWith('/readyz') || (status === 404 && url.includes('/reports?'));

const fetchAll = async (url: string, init: RequestInit = {}): Promise<number> => {
  const answer = await fetch(url, init);
  const bytes = (await answer.arrayBuffer()).byteLength;
  if (answer.status >= 400 && !isMiss(answer.status, url))
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

/** Opens a WebSocket of these streams, and closes it once it is open. */
const openSocket = (name: string, feedIdsOf: (target: Target) => readonly string[]): Asked => ({
  name,
  ask: async (target) => {
    const path = `/api/v1/ws?feedIDs=${feedIdsOf(target).join(',')}`;
    const socket = new WebSocket(`${target.url.replace('http', 'ws')}${path}`, { headers: signed(target, path) });
    await once(socket, 'open');
    socket.close();
    await once(socket, 'close');
    return 0;
  },
});

/** Of a second from the stream that has one report each, of longer buckets from the one that has one a minute. */
const candles = (resolution: number) => (target: Target) => {
  const feedId = target.feedIds[resolution === 1 ? 0 : 1];
  const from = Math.max(target.now - 1_439 * resolution, target.now - 60 * daySeconds);
  return `/api/v1/reports/candles?feedID=${feedId}&resolution=${resolution}&from=${from}&to=${target.now - 1}`;
};

/** A day of streams, as the explorer's list asks for it, or as many buckets of each as a request may have. */
const candlesMany = (resolution: number, streams: number) => (target: Target) => {
  const from = target.now - Math.min(daySeconds, Math.floor(limits.candlesManyMax / streams - 1) * resolution);
  return `/api/v1/reports/candles/bulk?feedIDs=${target.feedIds.slice(2, 2 + streams).join(',')}&resolution=${resolution}&from=${from}&to=${target.now - 1}`;
};

const several = ({ feedIds }: Target): readonly string[] => feedIds.slice(2, 232);
const many = (target: Target): string => several(target).join(',');
/** As many streams that have no reports at all. */
const silent = ({ feedIds }: Target): string => feedIds.slice(300, 530).join(',');

/** Every filter, with values that all streams pass. */
const filters =
  '/api/v1/discovery?base_asset=eth,test&quote_asset=eur,usd&asset_class=fx,crypto&feed_type=fx,crypto&attribute_type=price,cexprice' +
  '&status=inactive,live&network_type=mainnet,testnet&hidden=true&created_after=2000-01-01&created_before=2100-01-01';

/** Another second for each request: what is asked for again is kept. */
const createAgo = (from: number): (() => number) => {
  let ago = from;
  return () => ago++;
};
const [recentAgo, earlierAgo] = [createAgo(1), createAgo(40_000)];

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
  read(
    'latest of 230 streams without reports',
    (target) => `/api/v1/reports/latest?feedIDs=${silent(target)}&missing=true`,
  ),
  read(
    'report at a moment before the first',
    ({ feedIds, now }) => `/api/v1/reports?feedID=${feedIds[0]}&timestamp=${now - 2 * daySeconds}`,
  ),
  read('bulk of 230 streams', (target) => `/api/v1/reports/bulk?feedIDs=${many(target)}&timestamp=${target.now - 50}`),
  read(
    'bulk of 230 streams, cold',
    (target) => `/api/v1/reports/bulk?feedIDs=${many(target)}&timestamp=${target.now - recentAgo()}`,
  ),
  read(
    'bulk of 230 streams without a report then, cold',
    (target) => `/api/v1/reports/bulk?feedIDs=${many(target)}&timestamp=${target.now - earlierAgo()}&missing=true`,
  ),
  read(
    'bulk of 230 streams without a report then',
    (target) => `/api/v1/reports/bulk?feedIDs=${many(target)}&timestamp=${target.now - 40_000}&missing=true`,
  ),
  read(
    'bulk of 230 streams without reports',
    (target) => `/api/v1/reports/bulk?feedIDs=${silent(target)}&timestamp=${target.now - 50}&missing=true`,
  ),
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
  read(
    'coverage of 230 streams, a day',
    (target) =>
      `/api/v1/reports/coverage/bulk?feedIDs=${many(target)}&from=${target.now - daySeconds}&to=${target.now - 1}`,
  ),
  read(
    'coverage of several streams, 43,200 gaps in a day',
    ({ feedIds, now }) =>
      `/api/v1/reports/coverage/bulk?feedIDs=${feedIds.at(-1)}&from=${now - daySeconds}&to=${now - 1}`,
  ),
  read('candles, 1,440 of a second', candles(1)),
  read(
    'candles, 19 of a second with 1,000 reports each',
    ({ feedIds, now }) =>
      `/api/v1/reports/candles?feedID=${feedIds.at(-2)}&resolution=1&from=${now - 19}&to=${now - 1}`,
  ),
  read('candles, 1,440 of a minute', candles(60)),
  read('candles, 1,440 of 5 minutes', candles(300)),
  read('candles, 1,440 of 15 minutes', candles(900)),
  read('candles, 1,440 of an hour', candles(3_600)),
  read('candles, 360 of 4 hours', candles(14_400)),
  read('candles, 60 of a day', candles(daySeconds)),
  read('candles of 100 streams, a day of hours', candlesMany(3_600, 100)),
  read('candles of 100 streams, a day of 15 minutes', candlesMany(900, 100)),
  read('candles of 230 streams, 85 of a second', candlesMany(1, 230)),
  read('candles of 230 streams, a day of 15 minutes', candlesMany(900, 230)),
  read('discovery of 2,000 streams', () => '/api/v1/discovery'),
  read('discovery of 2,000 streams, filtered', () => filters),
  open('discovery of 2,000 streams, anonymous', '/api/v1/discovery'),
  read('feeds of 2,000 streams', () => '/api/v1/feeds'),
  resume('event stream, 100,000 positions back, all of another stream', ({ feedIds }) => feedIds.slice(1, 2), 3_000),
  resume('event stream, 100,000 positions back, 86,400 reports', ({ feedIds }) => feedIds.slice(0, 1), 3_000),
  resume('event stream, 100,000 positions back, 230 streams', several, 3_000),
  openSocket('WebSocket of 230 streams', several),
  {
    name: 'origins',
    ask: ({ url }) => fetchAll(`${url}/`, { method: 'HEAD' }),
  },
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

/** `--only TEXT`, once or several times, measures the rows whose names have one of the texts. */
export const benchBlocking = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const only = args.filter((_, i) => args[i - 1] === '--only');
  if (!('threadCpuUsage' in process))
    throw new Error('This workload needs Node 24: older releases count no CPU by thread.');
  const target = await startProgram<BlockingWorld>('blocking-target');
  const figures: Measurement[] = [];
  try {
    for (const one of asked)
      if (only.length === 0 || only.some((text) => one.name.includes(text))) figures.push(await measure(target, one));
  } finally {
    target.child.kill('SIGTERM');
  }
  return figures;
};
