// Time tells nothing: neither who has an account nor which streams exist. Answers are compared here, times with FULL=1, which needs a quiet
// machine; its control, a server that rejects unknown users early, must be found out.
import { fileURLToPath } from 'node:url';
import { authHeaders, type FeedId, signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import { countOf, inFull, seedOf, tally, tallyControl } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import { head, type RawAnswer, toLines } from '../support/raw-http.ts';
import { createWorld, type Server, startProgram, startServer, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { compareTimes, type Difference, measureKinds, type RequestKind } from './timing.ts';

const [forbidden, hidden, unknown] = [secondStream(2), secondStream(3), secondStream(4)];
const reader = { userId: crypto.randomUUID(), secret: 'a-secret-of-the-reader' };
const second = Math.floor(Date.now() / 1_000) - 20;
const roll = createRandom(seedOf());
let world: World;
let server: Server;

beforeAll(async () => {
  world = await createWorld();
  const store = await openStore(world.store, 'write');
  const streams = [testStream(forbidden), testStream(hidden, { hidden: true })];
  await store.admin.update('stream', [forbidden, hidden], () => streams, act);
  const { report } = await createSignedReports();
  await store.reports.append([forbidden, hidden].map((id) => report(id, second, second)));
  const createdAt = '2026-01-01T00:00:00.000000Z';
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(reader.userId, reader.secret);
  const account = {
    userId: reader.userId,
    name: 'of one stream',
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'one', sealed, createdAt, revokedAt: null }],
    entitlements: [`feed:${world.feedId}`],
    rateLimits: { '*': 0 },
  };
  await store.admin.update('account', [reader.userId], () => [account], act);
  await store.close();
  server = await startServer(world, ['--failures-per-second', '0', '--log-level', 'silent']);
});
afterAll(async () => {
  await server.stop();
  world.remove();
});

const latest = (id: FeedId): string => `/api/v1/reports/latest?feedID=${id}`;

/** Of one user, or of another one each time, with a signature that is nobody's. Making it takes equally long. */
const forgedBy = (known?: string) => (): string => {
  const other = crypto.randomUUID();
  return head(
    `GET ${latest(world.feedId)} HTTP/1.1`,
    'Host: a',
    `${authHeaders.userId}: ${known ?? other}`,
    `${authHeaders.timestamp}: ${Date.now()}`,
    `${authHeaders.signature}: ${'5a'.repeat(32)}`,
  );
};

const signedFor = (target: string) => (): string => {
  const auth = signRequest({ method: 'GET', target, userId: reader.userId, timestampMs: Date.now() }, reader.secret);
  return head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(auth));
};

/** An answer without what differs from request to request. */
const blank = ({ status, headers, body }: RawAnswer, feedId = ''): string => {
  const { requestId = '' } = JSON.parse(body) as { readonly requestId?: string };
  const text = body.replace(requestId, '').replaceAll(feedId, 'FEED');
  const length = Number(headers['content-length']) - requestId.length;
  return JSON.stringify([status, { ...headers, date: '', 'x-request-id': '', 'content-length': length }, text]);
};

const worstOf = (differences: readonly Difference[]) => ({
  'µs between their means': Math.max(...differences.map(({ meanUs }) => Math.abs(meanUs))),
  't of the difference': Math.max(...differences.map(({ t }) => Math.abs(t))),
});

const userRequests = countOf(400, 200_000);

test(`timing: unknown users and wrong signatures get one answer, ${userRequests} requests`, async () => {
  const answers = new Set<string>();
  const kinds: readonly RequestKind[] = [forgedBy(world.userId), forgedBy()];
  const times = await measureKinds(server.port, kinds, userRequests / 2, roll, (answer) => answers.add(blank(answer)));
  const [known = [], stranger = []] = times;
  const differences = compareTimes(known, stranger);
  tally(worstOf(differences), { 'µs between their means': 3, 't of the difference': 10 });
  expect([...answers].map((text) => JSON.parse(text)[0])).toEqual([401]);
}, 600_000);

/** A difference that is beyond doubt. */
const clearT = 20;

inFull(
  'timing: the control, which rejects unknown users early, answers the same and sooner',
  async () => {
    const userId = crypto.randomUUID();
    const file = fileURLToPath(new URL('./timing-control.ts', import.meta.url));
    const program = startProgram(['--conditions=source', '--import', 'tsx', file, userId], process.cwd());
    const [, port = ''] = await program.printed(/^\{"port":(\d+)\}$/m);
    const answers = new Set<string>();
    const kinds: readonly RequestKind[] = [forgedBy(userId), forgedBy()];
    const times = await measureKinds(Number(port), kinds, userRequests / 2, roll, (answer) =>
      answers.add(blank(answer)),
    );
    program.child.kill();
    const [known = [], stranger = []] = times;
    const [atNine] = compareTimes(known, stranger);
    tallyControl({ 't of the difference': Math.abs(atNine?.t ?? 0) });
    expect(Math.abs(atNine?.t ?? 0)).toBeGreaterThan(clearT);
    expect(answers.size).toBe(1);
  },
  600_000,
);

const streamPairs = countOf(320, 100_000);

test(`existence: unknown, hidden and forbidden streams get one answer on four routes, ${streamPairs} pairs`, async () => {
  const routes: readonly ((id: FeedId) => string)[] = [
    latest,
    (id) => `/api/v1/reports?feedID=${id}&timestamp=${second}`,
    (id) => `/api/v1/reports/bulk?feedIDs=${id}&timestamp=${second}`,
    (id) => `/api/v1/reports/page?feedID=${id}&startTimestamp=${second}`,
  ];
  const ids = [unknown, forbidden, hidden];
  const answers = new Set<string>();
  for (const target of routes) {
    const kinds = ids.map((id) => signedFor(target(id)));
    const perKind = streamPairs / routes.length / 2;
    const onAnswer = (answer: RawAnswer, kind: number) => answers.add(blank(answer, ids[kind]));
    const [none = [], ...others] = await measureKinds(server.port, kinds, perKind, roll, onAnswer);
    for (const times of others) tally(worstOf(compareTimes(none, times)), { 'µs between their means': 5 });
  }
  expect([...answers].map((text) => JSON.parse(text)[0])).toEqual([401]);
}, 600_000);
