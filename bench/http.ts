// CPU per request of the whole node against a bare node:http server that sends the same bytes, alternating in one run.
import { type ChildProcess, spawn } from 'node:child_process';
import { openSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { fileURLToPath } from 'node:url';
import { signRequest } from '@sealpost/protocol';
import type { Measurement } from './measure.ts';

type Target = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly userId: string;
  readonly secret: string;
  readonly feedIds: readonly string[];
  readonly from: number;
};

const rounds = 5;
const connections = 16;
const ticksPerSecond = 100;

const startTarget = (mode: 'api' | 'bare'): Promise<Target> => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./http-target.mjs', import.meta.url)), mode], {
    stdio: ['ignore', openSync('/dev/null', 'w'), 'inherit', 'ipc'],
  });
  return new Promise((resolve) =>
    child.once('message', (told) => resolve({ child, ...(told as Omit<Target, 'child'>) })),
  );
};

/** Seconds of CPU that a process has used so far. */
const cpuSeconds = ({ child }: Target): number => {
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
};

const rssAnonMegabytes = ({ child }: Target): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;

/** A request as bytes, signed anew every second: a signature lives for five. */
const createRequest = (target: Target, path: string): (() => Buffer) => {
  let made = 0;
  let bytes = Buffer.alloc(0);
  return () => {
    const now = Date.now();
    if (now - made < 1_000) return bytes;
    made = now;
    const auth =
      target.userId === undefined
        ? {}
        : signRequest({ method: 'GET', target: path, userId: target.userId, timestampMs: now }, target.secret);
    const headers = Object.entries({ Host: '127.0.0.1', Accept: '*/*', 'User-Agent': 'bench', ...auth }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    bytes = Buffer.from(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
    return bytes;
  };
};

/** Sends requests over keep-alive connections, one after the other on each; every answer must be as long as the first. */
const load = async (target: Target, path: string, requests: number): Promise<void> => {
  const request = createRequest(target, path);
  const { port } = new URL(target.url);
  let left = requests;
  await Promise.all(
    Array.from(
      { length: connections },
      () =>
        new Promise<void>((resolve, reject) => {
          const socket = connect(Number(port), '127.0.0.1', () => next());
          let expected = 0;
          let received = 0;
          const next = (): void => {
            if (left <= 0) return void socket.end(resolve as () => void);
            left -= 1;
            received = 0;
            expected = 0;
            socket.write(request());
          };
          socket.on('error', reject).on('data', (chunk) => {
            if (expected === 0) {
              const head = chunk.indexOf('\r\n\r\n');
              const text = chunk.toString('latin1', 0, head);
              if (!/^HTTP\/1.1 20[06]/.test(text)) return void reject(new Error(text));
              expected = head + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1]);
            }
            received += chunk.length;
            if (received >= expected) next();
          });
        }),
    ),
  );
};

const cpuPerRequest = async (target: Target, path: string, requests: number): Promise<number> => {
  const before = cpuSeconds(target);
  await load(target, path, requests);
  return ((cpuSeconds(target) - before) * 1_000_000) / requests;
};

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

const copyBody = async (api: Target, bare: Target, path: string): Promise<void> => {
  const headers = signRequest({ method: 'GET', target: path, userId: api.userId, timestampMs: Date.now() }, api.secret);
  const body = await (await fetch(`${api.url}${path}`, { headers })).arrayBuffer();
  await fetch(`${bare.url}${path}`, { method: 'PUT', body });
};

const compare = async (
  api: Target,
  bare: Target,
  name: string,
  path: string,
  requests: number,
): Promise<readonly Measurement[]> => {
  await copyBody(api, bare, path);
  for (const target of [api, bare]) await load(target, path, requests / 2);
  const [ours, plain]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    ours.push(await cpuPerRequest(api, path, requests));
    plain.push(await cpuPerRequest(bare, path, requests));
  }
  const [cpu, bareCpu] = [median(ours), median(plain)];
  return [
    { name, value: cpu, unit: 'µs CPU' },
    { name: `${name}, bare node:http`, value: bareCpu, unit: 'µs CPU' },
    { name: `${name}, share of the bare server’s speed`, value: bareCpu / cpu, unit: 'ratio' },
  ];
};

export const benchHttp = async (): Promise<readonly Measurement[]> => {
  const [api, bare] = await Promise.all([startTarget('api'), startTarget('bare')]);
  try {
    const [first = ''] = api.feedIds;
    const figures = [
      ...(await compare(api, bare, 'latest', `/api/v1/reports/latest?feedID=${first}`, 20_000)),
      ...(await compare(
        api,
        bare,
        'bulk of 24',
        `/api/v1/reports/bulk?feedIDs=${api.feedIds.join(',')}&timestamp=${api.from + 600}`,
        2_000,
      )),
      ...(await compare(
        api,
        bare,
        'page of 100',
        `/api/v1/reports/page?feedID=${first}&startTimestamp=${api.from + 200}&limit=100`,
        2_000,
      )),
    ];
    return [...figures, { name: 'RssAnon after that', value: rssAnonMegabytes(api), unit: 'MB' }];
  } finally {
    for (const { child } of [api, bare]) child.kill('SIGTERM');
  }
};
