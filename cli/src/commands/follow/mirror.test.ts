// A mirror between a real API and a real ingest, in this process: what it registers, what it waits for, and what it never skips.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createClient } from '@sealpost/client';
import { type FeedId, formatDate, type Stream } from '@sealpost/protocol';
import { resumeMirror } from '@sealpost/server/ingest/mirror';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { IngestHandlerParts } from '@sealpost/server/ingest/sources/listener';
import { type Store, StoreError } from '@sealpost/server/store/store';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openService, type Service } from '../../../../tests/support/running-api.ts';
import {
  act,
  openPrivateListener,
  openRunningIngest,
  type RunningIngest,
  registerSigners,
  testStream,
} from '../../../../tests/support/running-ingest.ts';
import {
  createSignedReports,
  millisecondStream,
  type SignedReports,
  secondStream,
} from '../../../../tests/support/signed-reports.ts';
import { askPlaces, parseIngestUrl, sendLines, TransientError } from '../ingest/remote.ts';
import { openMirrorCatalog } from './catalog.ts';
import { type MirrorParts, runMirror } from './mirror.ts';
import { runSession } from './session.ts';
import type { MirrorTarget } from './target.ts';

const [first, second, third] = await Promise.all([
  createSignedReports(),
  createSignedReports('new oracles'),
  createSignedReports('other oracles'),
]);
const token = 'a-token-of-the-test';
const start = Math.floor(Date.now() / 1_000) - 100;
/** Failures of the target's store, each once. */
const trouble = { resumes: [] as StoreError[], appends: [] as StoreError[] };
let source: Service;
let running: RunningIngest;
let target: MirrorTarget;
const closers: (() => Promise<unknown>)[] = [];
let streams = 0;

beforeAll(async () => {
  source = await openService([], first.signerSets, Date.now);
  running = await openRunningIngest([], first.signerSets, Date.now);
  const { store, ingest } = running;
  const submit: typeof ingest.submit = async (lines, firstLine) => {
    const error = trouble.appends.shift();
    if (error !== undefined) throw error;
    return ingest.submit(lines, firstLine);
  };
  const resume: IngestHandlerParts['resume'] = async (request) => {
    const error = trouble.resumes.shift();
    if (error !== undefined) throw error;
    return resumeMirror({ store, nowMs: Date.now(), retentionDays: 1, actor: 'test' }, request);
  };
  const listener = await openPrivateListener({ ...ingest, submit }, token, { resume });
  const address = parseIngestUrl(listener.url, token);
  target = {
    resume: (request, signal) => askPlaces(address, request, signal),
    send: (lines, signal) => sendLines(address, lines, signal, { isResuming: true }),
    administer: (change) => change(store.admin),
    close: async () => {},
  };
  closers.push(source.close, running.close, () => listener.close(0));
});
afterEach(async () => {
  for (const close of mirrors.splice(0)) await close();
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

/** A stream of its own for a test, registered in these stores. */
const addStream = async (
  stores: readonly Store[],
  changes: Partial<Stream> = {},
  createId: (n: number) => FeedId = secondStream,
): Promise<FeedId> => {
  streams += 1;
  const stream = testStream(createId(streams), changes);
  for (const { admin } of stores) await admin.update('stream', [stream.feedId], () => [stream], act);
  return stream.feedId;
};

const mirrors: (() => Promise<void>)[] = [];

/** Starts a mirror of these streams; it ends with the test. */
const startMirror = async (
  feedIds: readonly FeedId[],
  options: Readonly<Record<string, unknown>> = {},
  changes: Partial<MirrorParts> = {},
) => {
  const stop = new AbortController();
  const { signal } = stop;
  const url = new URL(source.url);
  const client = createClient({ baseUrl: source.url, ...(await source.addAccount(['public'])) });
  const session = { nowMs: Date.now, actor: () => 'test' };
  const catalog = await openMirrorCatalog({ session, client, url, network: 'testnet', signal }, feedIds, options);
  const told: string[] = [];
  const tell = (text: string) => void told.push(text);
  const parts = { url, client, target, catalog, from: start, restart: false, nowMs: Date.now, signal, tell };
  const results: LineResult[] = [];
  const finished = (async () => {
    for await (const batch of runMirror({ ...parts, refreshMs: 200, ...changes })) results.push(...batch);
  })();
  finished.catch(() => {});
  mirrors.push(async () => {
    stop.abort();
    await finished.catch(() => {});
  });
  return { told, results, finished };
};

/** Appends reports to the source. */
const append = async ({ report }: SignedReports, feedId: FeedId, from: number, count: number): Promise<void> =>
  source.append(Array.from({ length: count }, (_, i) => report(feedId, from + i, from + i)));

const secondsIn = async ({ reports }: Store, feedId: FeedId): Promise<readonly number[]> =>
  (await reports.page(feedId, 0, 1_000)).reports.map(({ observationsMs }) => observationsMs / 1_000);

/** Waits until the target has so many reports of a stream, which must be those of the source. */
const copied = async (feedId: FeedId, count: number): Promise<void> => {
  await expect.poll(async () => (await secondsIn(running.store, feedId)).length).toBe(count);
  expect(await secondsIn(running.store, feedId)).toEqual(await secondsIn(source.store, feedId));
};
test('mirror: with adopt, a stream that appears at the source is registered and copied from the beginning of the mirror', async () => {
  const a = await addStream([source.store]);
  await append(first, a, start, 3);
  await startMirror([], { adopt: true });
  await copied(a, 3);
  const b = await addStream([source.store]);
  await append(first, b, start + 1, 4);
  await copied(b, 4);
});

test('mirror: it retries while the target is unavailable or its disk is full, and skips nothing', async () => {
  const a = await addStream([source.store, running.store]);
  await append(first, a, start, 50);
  trouble.resumes.push(new StoreError('store_unavailable', 'The database is away.'));
  trouble.appends.push(new StoreError('store_disk_full', 'The disk is full.'));
  const { told } = await startMirror([a]);
  await copied(a, 50);
  await append(first, a, start + 50, 5);
  await copied(a, 55);
  expect(told.filter((text) => text.startsWith('warning:'))).toEqual([
    expect.stringMatching(/cannot accept reports now: The database is away\. Retrying\.$/),
    expect.stringMatching(/is out of disk space: The disk is full\. Retrying\.$/),
  ]);
});

test('mirror: an earlier start is copied first, then what is new', async () => {
  const a = await addStream([source.store, running.store]);
  await append(first, a, start, 10);
  await startMirror([a], {}, { from: start + 5 });
  await copied(a, 5).catch(() => {}); // it has only the last five, which are not all of the source's
  expect(await secondsIn(running.store, a)).toHaveLength(5);
  for (const close of mirrors.splice(0)) await close();
  await startMirror([a]);
  await copied(a, 10);
  await append(first, a, start + 10, 5);
  await copied(a, 15);
});

test('mirror: without adopt, an unknown stream causes a warning and is skipped until it is registered', async () => {
  const [a, b] = [await addStream([source.store, running.store]), await addStream([source.store])];
  for (const feedId of [a, b]) await append(first, feedId, start, 3);
  const { told } = await startMirror([a, b]);
  await copied(a, 3);
  expect(told).toContainEqual(expect.stringContaining(`${b} is not in the target’s catalog`));
  await running.store.admin.update('stream', [b], () => [testStream(b)], act);
  await copied(b, 3);
});

test('mirror: with adopt, a new signer set of the source is registered, and no report is skipped', async () => {
  const [a, b] = [await addStream([source.store]), await addStream([source.store])];
  await append(first, a, start, 3);
  await startMirror([a, b], { adopt: true });
  await copied(a, 3);
  await append(second, a, start + 3, 3);
  await append(second, b, start, 3);
  await registerSigners(source.store, second.signerSets);
  await copied(a, 6);
  await copied(b, 3);
});

test('mirror: without adopt, streams of an unknown signer set wait while others continue, and then lose nothing', async () => {
  const [a, b] = [await addStream([source.store, running.store]), await addStream([source.store, running.store])];
  await append(third, a, start, 3);
  await append(first, b, start, 3);
  const { told } = await startMirror([a, b]);
  await copied(b, 3);
  await append(first, b, start + 3, 3);
  await copied(b, 6);
  expect(await secondsIn(running.store, a)).toEqual([]);
  expect(told).toContainEqual(expect.stringMatching(/unknown_config_digest: .* wait/));
  await registerSigners(running.store, third.signerSets);
  await copied(a, 3);
});

const ended = { status: 'decommissioned', decommissionedAt: formatDate(Date.now()) } as const;

test('mirror: with adopt, a decommissioned stream is copied to its last report, and then ended at the target', async () => {
  const [a, b] = [await addStream([source.store]), await addStream([source.store], ended)];
  for (const feedId of [a, b]) await append(first, feedId, start, 3);
  await startMirror([a, b], { adopt: true });
  await copied(b, 3);
  const statusOf = async () => (await running.store.admin.get('stream', b))?.status;
  await expect.poll(statusOf).toBe('decommissioned');
  await append(first, a, start + 3, 3);
  await copied(a, 6);
});

test('mirror: with adopt, a decommissioned stream of milliseconds is ended once the last report of its last second is copied', async () => {
  const b = await addStream([source.store], ended, millisecondStream);
  const lastMs = (start + 2) * 1_000 + 750;
  await source.append([start * 1_000, lastMs - 500, lastMs].map((at) => first.report(b, at, at)));
  // The target has its last second already, without its last report.
  await running.store.admin.update('stream', [b], () => [testStream(b)], act);
  await running.store.reports.append([start * 1_000, lastMs - 500].map((at) => first.report(b, at, at)));
  const statusOf = async () => (await running.store.admin.get('stream', b))?.status;
  const send: MirrorTarget['send'] = async function* (lines) {
    for await (const _ of lines) yield []; // acknowledges none
  };
  let resumes = 0;
  const resume: MirrorTarget['resume'] = (request, signal) => {
    resumes += 1;
    return target.resume(request, signal);
  };
  await startMirror([b], { adopt: true }, { target: { ...target, resume, send } });
  await expect.poll(() => resumes).toBeGreaterThan(2); // the second one was the first look at what has ended
  expect(await statusOf()).toBe('live');
  for (const close of mirrors.splice(0)) await close();
  await startMirror([b], { adopt: true });
  await copied(b, 3);
  await expect.poll(statusOf, { timeout: 10_000 }).toBe('decommissioned');
});

test('mirror: a stream that may not be read is skipped, and the others continue', async () => {
  const a = await addStream([source.store, running.store]);
  const b = await addStream([source.store, running.store], { hidden: true });
  for (const feedId of [a, b]) await append(first, feedId, start, 3);
  const { told } = await startMirror([a, b]);
  await copied(a, 3);
  await append(first, a, start + 3, 3);
  await copied(a, 6);
  expect(told).toContainEqual(expect.stringContaining(`rejects ${b}`));
});

test('mirror: a wrong secret ends it', async () => {
  const a = await addStream([source.store, running.store]);
  const client = createClient({ baseUrl: source.url, userId: crypto.randomUUID(), secret: 'wrong' });
  const { finished } = await startMirror([a], {}, { client });
  await expect(finished).rejects.toMatchObject({ code: 'unauthorized' });
});

test('mirror: a report that the target rejects for good is counted and does not stop its stream', async () => {
  const a = await addStream([source.store, running.store]);
  await append(first, a, start, 3);
  await running.store.reports.append([first.report(a, start + 1, start + 1, 7n)]);
  const { told, results } = await startMirror([a], {}, { restart: true });
  await copied(a, 3);
  expect(told).toContainEqual(expect.stringContaining('conflicting_report'));
  expect(results).toContainEqual(expect.objectContaining({ result: 'refused', code: 'conflicting_report' }));
});

test('mirror: a target that acknowledges nothing is given up', async () => {
  const a = await addStream([source.store]);
  await append(first, a, start, 3);
  const silent = createServer((request) => void request.resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const address = parseIngestUrl(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`, token); // it listens on a port
  const client = createClient({ baseUrl: source.url, ...(await source.addAccount(['public'])) });
  const ignore = () => {};
  const run = runSession([{ feedId: a, start, until: null }], {
    client,
    target: { ...target, send: (lines, signal) => sendLines(address, lines, signal) },
    live: { isRefused: false, ended: undefined },
    nowMs: Date.now,
    warn: ignore,
    findings: {
      copied: ignore,
      blocked: ignore,
      rejected: ignore,
      refused: ignore,
    },
    stop: new AbortController(),
    silenceMs: 200,
  });
  await expect(run.next()).rejects.toBeInstanceOf(TransientError);
  silent.closeAllConnections();
  silent.close();
});
