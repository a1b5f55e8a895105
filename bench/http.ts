// CPU per request of the whole node against a bare node:http server that gets the same requests and answers the same bytes, alternating
// in one run.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { signRequest } from '@sealpost/protocol';
import { anonymousMegabytes, type Measurement, median } from './measure.ts';
import { startProgram } from './processes/target.ts';
import type { BareAnswer, TargetRequest } from './programs/http-target.ts';

export type Target = { readonly child: ChildProcess; readonly url: string };
export type Account = { readonly userId: string; readonly secret: string };
export type Api = Target &
  Account & { readonly feedIds: readonly string[]; readonly from: number; readonly seconds: number };

const rounds = 5;
/** Rounds before those that count: V8 compiles code again after the first connections close. */
const warmUpRounds = 3;
const connections = 16;
const requestsBeforeMemory = 1_000_000;
const coldRequests = 3_000;

export const startTarget = <T extends Target>(mode: 'api' | 'bare', ...args: readonly string[]): Promise<T> =>
  startProgram<T>('http-target', [mode, ...args]);

/** Asks a target for something, by message: its CPU time, or to take an answer over. */
const ask = <T>({ child }: Target, request: TargetRequest): Promise<T> =>
  new Promise((resolve) => {
    child.once('message', (told) => resolve(told as T));
    child.send(request);
  });

/** Signed, unless there is no account. */
const authOf = (account: Account | undefined, target: string): Record<string, string> =>
  account === undefined
    ? {}
    : signRequest({ method: 'GET', target, userId: account.userId, timestampMs: Date.now() }, account.secret);

const render = (account: Account | undefined, path: string): Buffer => {
  const auth = authOf(account, path);
  const headers = Object.entries({ Host: '127.0.0.1', Accept: '*/*', 'User-Agent': 'bench', ...auth }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.from(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
};

/** The same request over and over, signed anew every second: a signature lives for five. */
const repeat = (account: Account | undefined, path: string, count: number): (() => Buffer | undefined) => {
  let left = count;
  let made = 0;
  let bytes: Buffer = Buffer.alloc(0);
  return () => {
    if (left-- <= 0) return undefined;
    if (Date.now() - made < 1_000) return bytes;
    made = Date.now();
    bytes = render(account, path);
    return bytes;
  };
};

/** One path after the other, all of them so many times. */
export const cycle = (account: Account, paths: readonly string[], times: number): (() => Buffer | undefined) => {
  let next = 0;
  return () => {
    const path = next < paths.length * times ? paths[next++ % paths.length] : undefined;
    return path === undefined ? undefined : render(account, path);
  };
};

/** Sends requests over keep-alive connections, one after the other on each, until there are no more. */
const load = async ({ url }: Target, requests: () => Buffer | undefined, sockets = connections): Promise<void> => {
  const { port } = new URL(url);
  const converse = (resolve: () => void, reject: (error: Error) => void): void => {
    const socket = connect(Number(port), '127.0.0.1', () => next());
    let expected = 0;
    let received = 0;
    const next = (): void => {
      const request = requests();
      if (request === undefined) return void socket.end(resolve);
      received = 0;
      expected = 0;
      socket.write(request);
    };
    socket.on('error', reject).on('data', (chunk) => {
      if (expected === 0) {
        const head = chunk.indexOf('\r\n\r\n');
        const text = chunk.toString('latin1', 0, head);
        if (!/^HTTP\/1.1 20[06]/.test(text)) return void reject(new Error(chunk.toString()));
        expected = head + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1]);
      }
      received += chunk.length;
      if (received >= expected) next();
    });
  };
  await Promise.all(Array.from({ length: sockets }, () => new Promise<void>(converse)));
};

export const cpuPerRequest = async (
  target: Target,
  count: number,
  requests: () => Buffer | undefined,
): Promise<number> => {
  const before = await ask<number>(target, { ask: 'cpu' });
  await load(target, requests);
  return ((await ask<number>(target, { ask: 'cpu' })) - before) / count;
};

/** What node adds by itself, on either side. */
const ownHeaders = new Set(['date', 'connection', 'keep-alive']);

/** The bare server learns an answer: its headers and its body. */
const teach = async (api: Api, bare: Target, path: string, account: Account | undefined): Promise<void> => {
  const headers = { ...authOf(account, path), 'Accept-Encoding': 'identity' };
  const response = await fetch(`${api.url}${path}`, { headers });
  const answer: BareAnswer = {
    path,
    headers: [...response.headers].filter(([name]) => !ownHeaders.has(name)).flat(),
    body: await response.text(),
  };
  await ask(bare, { ask: 'learn', answer });
};

type Comparison = {
  readonly name: string;
  readonly path: string;
  readonly requests: number;
  /** Are the requests unsigned? */
  readonly anonymous?: true;
  /** Paths to more than the node keeps rendered: asked for in turn, none of it is there any more. */
  readonly cold?: readonly string[];
};

const compare = async (api: Api, bare: Target, comparison: Comparison): Promise<readonly Measurement[]> => {
  const { name, path, requests, cold = [] } = comparison;
  const coldTimes = Math.ceil(coldRequests / Math.max(1, cold.length));
  await load(api, cycle(api, cold, coldTimes));
  const coldCpu = await cpuPerRequest(api, cold.length * coldTimes, cycle(api, cold, coldTimes));
  const account = comparison.anonymous ? undefined : api;
  await teach(api, bare, path, account);
  for (let round = 0; round < warmUpRounds; round++)
    for (const target of [api, bare]) await load(target, repeat(account, path, requests));
  const [ours, plain]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await cpuPerRequest(api, requests, repeat(account, path, requests)));
    plain.push(await cpuPerRequest(bare, requests, repeat(account, path, requests)));
  }
  const [cpu, bareCpu] = [median(ours), median(plain)];
  const figures = [
    { name, value: cpu, unit: 'µs CPU' },
    { name: `${name}, bare node:http`, value: bareCpu, unit: 'µs CPU' },
    { name: `${name}, share of the bare server’s speed`, value: bareCpu / cpu, unit: 'ratio' },
  ];
  if (cold.length === 0) return figures;
  return [
    ...figures,
    { name: `${name}, times the bare server’s CPU`, value: cpu / bareCpu, unit: 'warm' },
    { name: `${name}, times the bare server’s CPU`, value: coldCpu / bareCpu, unit: 'cold' },
  ];
};

export const latestPath = (feedId: string): string => `/api/v1/reports/latest?feedID=${feedId}`;
const latestManyPath = ({ feedIds }: Api): string => `/api/v1/reports/latest?feedIDs=${feedIds.join(',')}`;
export const bulkPath = ({ feedIds }: Api, at: number): string =>
  `/api/v1/reports/bulk?feedIDs=${feedIds.join(',')}&timestamp=${at}`;
export const pagePath = (feedId: string, from: number): string =>
  `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${from}&limit=100`;

/** Seconds of reports that a node holds of which nothing but `latest` is asked. */
const fewSeconds = '20';
/** Seconds of reports that the other nodes hold. */
const storedSeconds = '2400';

/** CPU of `latest` of a node whose store is at an address, and of one with a store of its own, by turns. */
export const benchLatestOn = async (address: string): Promise<readonly [number, number]> => {
  const nodes = [await startTarget<Api>('api', fewSeconds, address), await startTarget<Api>('api', fewSeconds)];
  const requests = 20_000;
  const taken = nodes.map((): number[] => []);
  try {
    // The first round is for the compilers.
    for (let round = 0; round <= rounds; round++)
      for (const [i, node] of nodes.entries()) {
        const path = latestPath(node.feedIds[0] ?? '');
        const cpu = await cpuPerRequest(node, requests, repeat(node, path, requests));
        if (round > 0) taken[i]?.push(cpu);
      }
  } finally {
    for (const { child } of nodes) child.kill('SIGTERM');
  }
  const [theirs = [], own = []] = taken;
  return [median(theirs), median(own)];
};

/** Every so many seconds: for a bulk more moments than a node keeps rendered, for a page no run twice. */
const secondsApart = (api: Api, step: number): readonly number[] =>
  Array.from({ length: Math.floor((api.seconds - 300) / step) }, (_, i) => api.from + 10 + i * step);

const comparisonsOf = (api: Api): readonly Comparison[] => {
  const [first = ''] = api.feedIds;
  const last = api.from + api.seconds - 250;
  return [
    { name: 'latest', path: latestPath(first), requests: 20_000 },
    { name: 'latest of 24', path: latestManyPath(api), requests: 5_000 },
    { name: 'discovery of 2,000', path: '/api/v1/discovery', requests: 500 },
    { name: 'discovery of 2,000, anonymous', path: '/api/v1/discovery', requests: 500, anonymous: true },
    {
      name: 'bulk of 24',
      path: bulkPath(api, last),
      requests: 5_000,
      cold: secondsApart(api, 10).map((at) => bulkPath(api, at)),
    },
    {
      name: 'page of 100',
      path: pagePath(first, last),
      requests: 5_000,
      cold: api.feedIds.flatMap((feedId) => secondsApart(api, 192).map((from) => pagePath(feedId, from))),
    },
  ];
};

/** Requests of which each makes the server read much that it has not rendered, by the number of the request. */
const blockingPaths = ({ feedIds, from, seconds }: Api): Readonly<Record<string, (i: number) => string>> => {
  const [first = ''] = feedIds;
  const all = feedIds.join(',');
  const end = (i: number): number => from + seconds - 1 - i;
  return {
    'page of 1,000': (i) => `/api/v1/reports/page?feedID=${first}&startTimestamp=${from + i}&limit=1000`,
    'coverage of 24 streams': (i) => `/api/v1/reports/coverage/bulk?feedIDs=${all}&from=${from}&to=${end(i)}`,
    'candles of 24 streams': (i) =>
      `/api/v1/reports/candles/bulk?feedIDs=${all}&resolution=60&from=${from}&to=${end(i)}`,
    'discovery of 2,000': () => '/api/v1/discovery',
  };
};

/** The longest iteration of the event loop in each of these requests, median of nine, after one that does not count. */
const longestBlocks = async (api: Api): Promise<readonly Measurement[]> => {
  const figures: Measurement[] = [];
  for (const [name, pathOf] of Object.entries(blockingPaths(api))) {
    const longest: number[] = [];
    for (let i = 0; i < 10; i++) {
      await ask(api, { ask: 'block' });
      await load(api, cycle(api, [pathOf(i)], 1), 1);
      longest.push(await ask<number>(api, { ask: 'block' }));
    }
    figures.push({ name: `${name}, longest block of the event loop`, value: median(longest.slice(1)), unit: 'ms' });
  }
  return figures;
};

/** A node whose reports another process stored, so that its memory is that of a node that serves them. */
const startFilled = async (folder: string): Promise<Api> => {
  const { child, from } = await startProgram<{ readonly from: number }>('http-target', ['fill', storedSeconds, folder]);
  if (child.exitCode === null) await once(child, 'exit');
  return startTarget('api', storedSeconds, folder, String(from));
};

/** `--only NAME` measures one row, `block` or `memory`. */
export const benchHttp = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const only = args.includes('--only') ? args[args.indexOf('--only') + 1] : undefined;
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-bench-http-'));
  const [api, bare] = await Promise.all([startFilled(folder), startTarget('bare')]);
  try {
    const figures: Measurement[] = [];
    for (const comparison of comparisonsOf(api))
      if (only === undefined || only === comparison.name) figures.push(...(await compare(api, bare, comparison)));
    if (only === undefined || only === 'block') figures.push(...(await longestBlocks(api)));
    if (only !== undefined && only !== 'memory') return figures;
    await load(api, repeat(api, latestPath(api.feedIds[0] ?? ''), requestsBeforeMemory));
    return [
      ...figures,
      { name: 'RssAnon after a million requests', value: anonymousMegabytes(api.child.pid), unit: 'MB' },
    ];
  } finally {
    for (const { child } of [api, bare]) {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  }
};
