// Requests that are small to send and could be large to handle: each has its answer, takes little CPU, and leaves no memory behind.
import { readFileSync } from 'node:fs';
import { type FeedId, signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, tally } from '../support/full-count.ts';
import { exchange, head, toLines } from '../support/raw-http.ts';
import { createWorld, processesOf, type Server, startServer, type World } from '../support/real-program.ts';
import { openService } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

type Signer = (target: string) => readonly string[];
type Bomb = {
  readonly name: string;
  readonly target: (feedId: FeedId) => string;
  readonly lines?: readonly string[];
  readonly status: number;
  readonly code?: string;
  /** So large that the server closes before all of it is sent: the answer may be lost to a reset. */
  readonly mayReset?: true;
};

const latest = (feedId: FeedId): string => `/api/v1/reports/latest?feedID=${feedId}`;
const page = (limit: string) => (feedId: FeedId) =>
  `/api/v1/reports/page?feedID=${feedId}&startTimestamp=1763200000&limit=${limit}`;
const many = (count: number): string => Array.from({ length: count }, (_, i) => secondStream(i + 1)).join(',');
const times = (count: number, of: (i: number) => string): string =>
  Array.from({ length: count }, (_, i) => of(i)).join('');
const tooLarge = { status: 431, code: 'head_too_large' } as const;
const malformed = { status: 400, code: 'malformed_argument' } as const;

const bombs: readonly Bomb[] = [
  { name: '2,000 headers', target: latest, lines: Array.from({ length: 2_000 }, (_, i) => `h${i}: 1`), ...tooLarge },
  { name: '201 headers', target: latest, lines: Array.from({ length: 201 }, (_, i) => `h${i}: 1`), ...tooLarge },
  { name: 'a header of 64 KB', target: latest, lines: [`X-Other: ${'x'.repeat(65_536)}`], ...tooLarge, mayReset: true },
  { name: 'a query of 16 KB', target: (id) => `${latest(id)}&x=${'x'.repeat(16_384)}`, ...tooLarge },
  // Names that nobody asks for are ignored, whatever they are called.
  { name: 'headers named like object members', target: latest, lines: ['__proto__: x', 'constructor: x'], status: 200 },
  {
    name: 'arguments named like object members',
    target: (id) => `${latest(id)}&__proto__=1&constructor=2&__proto__[polluted]=3&constructor.prototype.polluted=4`,
    status: 200,
  },
  { name: '3,000 equal arguments', target: (id) => `${latest(id)}${times(3_000, () => '&a=')}`, status: 200 },
  {
    name: '150 equal arguments that mean something',
    target: (id) => `${latest(id)}${times(150, () => `&feedID=${id}`)}`,
    status: 400,
    code: 'repeated_argument',
  },
  { name: '2,000 integers as names', target: (id) => `${latest(id)}${times(2_000, (i) => `&${i}=`)}`, status: 200 },
  {
    name: 'headers with integers as names',
    target: latest,
    lines: Array.from({ length: 150 }, (_, i) => `${i}: 1`),
    status: 200,
  },
  { name: '235 streams', target: () => `/api/v1/reports/latest?feedIDs=${many(235)}`, ...malformed },
  {
    name: '10,000 streams',
    target: () => `/api/v1/reports/latest?feedIDs=${many(10_000)}`,
    ...tooLarge,
    mayReset: true,
  },
  {
    name: '15,000 slashes, for a browser',
    target: () => `${'/'.repeat(15_000)}x`,
    lines: ['Accept: text/html'],
    status: 404,
    code: 'page',
  },
  ...['0', '-1', '1e9', 'NaN', '1001', '9'.repeat(400), '0x10', '1.5'].map(
    (limit): Bomb => ({ name: `limit=${limit.slice(0, 8)}`, target: page(limit), ...malformed }),
  ),
];

const requestOf = ({ target, lines = [] }: Bomb, feedId: FeedId, sign: Signer): string => {
  const sent = target(feedId);
  return head(`GET ${sent} HTTP/1.1`, 'Host: a', 'Connection: close', ...sign(sent), ...lines);
};

let world: World;
let server: Server;
beforeAll(async () => {
  world = await createWorld();
  server = await startServer(world, ['--failures-per-second', '0', '--log-level', 'silent']);
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

const sign: Signer = (target) => {
  const { userId, secret } = world;
  return toLines(signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret));
};

const send = async (bomb: Bomb): Promise<string> => {
  const { answers } = await exchange(server.port, requestOf(bomb, world.feedId, sign), { answersMax: 1 });
  const [{ status, body } = { status: 0, body: '{}' }] = answers;
  const code = body.startsWith('<') ? 'page' : JSON.parse(body).code;
  return `${bomb.name}: ${status} ${status < 400 ? '' : code}`.trim();
};
const promised = ({ name, status, code = '' }: Bomb): string => `${name}: ${status} ${code}`.trim();

/** Of the server alone: from the sources, it is the child of a launcher. */
const processOf = (): number => processesOf(server.child).at(-1) ?? 0;
const cpuMs = (): number => {
  const fields = readFileSync(`/proc/${processOf()}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10; // ticks of 10 ms
};
const memoryMb = (): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${processOf()}/status`, 'utf8'))?.[1] ?? 0) / 1_024;

const requests = countOf(200, 10_000);
const rounds = Math.ceil(requests / bombs.length);
const linux = test.skipIf(process.platform !== 'linux');

linux(
  `bombs: each of ${requests} gets its answer`,
  async () => {
    const deviations = new Set<string>();
    const perBomb = async (bomb: Bomb, count: number): Promise<number> => {
      const before = cpuMs();
      for (let i = 0; i < count; i++) {
        const given = await send(bomb);
        if (given !== promised(bomb) && !(bomb.mayReset && given.endsWith(': 0')))
          deviations.add(`${given}, not ${promised(bomb)}`);
      }
      return (cpuMs() - before) / count;
    };
    for (const bomb of bombs) await perBomb(bomb, Math.min(rounds, 50)); // the heap is as large as it gets
    const before = memoryMb();
    const costs: number[] = [];
    for (const bomb of bombs) costs.push(await perBomb(bomb, rounds));
    tally(
      {
        'ms of CPU for the most expensive on average': Math.max(...costs),
        'MB more memory': Math.max(0, Math.round(memoryMb() - before)),
      },
      { 'ms of CPU for the most expensive on average': 5, 'MB more memory': 10 },
    );
    expect([...deviations]).toEqual([]);
  },
  3_600_000,
);

test('bombs: no object of the process has another member afterwards', async () => {
  const { report, signerSets } = await createSignedReports();
  const [feedId, nowMs] = [secondStream(1), 1_763_200_000_000];
  const service = await openService([testStream(feedId)], signerSets, () => nowMs);
  await service.append([report(feedId, nowMs / 1_000 - 1, nowMs / 1_000 - 1)]);
  const { userId, secret } = await service.addAccount(['public']);
  const signOwn: Signer = (target) =>
    toLines(signRequest({ method: 'GET', target, userId, timestampMs: nowMs }, secret));
  const members = () => [Object.prototype, Array.prototype, Function.prototype].map((one) => Reflect.ownKeys(one));
  const before = members();
  for (const bomb of bombs)
    await exchange(Number(new URL(service.url).port), requestOf(bomb, feedId, signOwn), { answersMax: 1 });
  expect(members()).toEqual(before);
  await service.close();
});
