// Where each stream of a mirror resumes, on a real store.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { act, testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import { openStore } from '../store/open.ts';
import type { Store } from '../store/store.ts';
import { type MirrorRequest, resumeMirror } from './mirror.ts';

const { report } = await createSignedReports();
const root = mkdtempSync(join(tmpdir(), 'sealpost-mirror-'));
const now = 1_763_200_000;
const [first, second, fine] = [secondStream(1), secondStream(2), millisecondStream(3)];
const day = 86_400;
let store: Store | undefined;
let stores = 0;

const current = (): Store => store as Store; // opened before each test

beforeEach(async () => {
  await store?.close();
  stores += 1;
  store = await openStore(join(root, String(stores)), 'write');
  const feedIds = [first, second, fine];
  await store.admin.update('stream', feedIds, () => feedIds.map((feedId) => testStream(feedId)), act);
});
afterAll(async () => {
  await store?.close();
  rmSync(root, { recursive: true, force: true });
});

const append = (feedId: FeedId, ...seconds: readonly number[]) => {
  const unit = feedId === fine ? 1_000 : 1;
  return current().reports.append(seconds.map((at) => report(feedId, at * unit, at * unit)));
};

const resume = async (
  request: Partial<MirrorRequest>,
  nowSeconds = now,
): Promise<readonly (readonly [number | null, number | null, number | null])[]> => {
  const context = { store: current(), nowMs: nowSeconds * 1_000, retentionDays: 30, actor: 'test' };
  const places = await resumeMirror(context, { source: 'there', feedIds: [first, second], ...request });
  return places.map(({ from, start, until }) => [from, start, until]);
};

test('mirror: a first catch-up that was interrupted resumes each stream by itself, one without a report at the remembered start', async () => {
  expect(await resume({ from: now - 3_600 })).toEqual([
    [now - 3_600, now - 3_600, null],
    [now - 3_600, now - 3_600, null],
  ]);
  await append(first, now - 3_600, now - 3_599);
  const later = [
    [now - 3_600, now - 3_598, null],
    [now - 3_600, now - 3_600, null],
  ];
  expect(await resume({}, now + 240)).toEqual(later);
  expect(await resume({ from: now - 3_360 }, now + 240)).toEqual(later); // -1h again, four minutes later
});

test('mirror: without --from it begins now, and a stream that is added later where the others began', async () => {
  expect(await resume({ feedIds: [first] })).toEqual([[now, now, null]]);
  expect(await resume({}, now + 600)).toEqual([
    [now, now, null],
    [now, now, null],
  ]);
  expect(await resume({ feedIds: [fine], source: 'elsewhere' }, now + 900)).toEqual([[now + 900, now + 900, null]]);
});

test('mirror: an earlier --from opens the time before, which is read from its beginning until it is filled', async () => {
  await resume({ feedIds: [first] });
  await append(first, now, now + 1);
  expect(await resume({ feedIds: [first], from: now - 100 })).toEqual([[now - 100, now - 100, now]]);
  await append(first, now - 100, now - 60);
  expect(await resume({ feedIds: [first] })).toEqual([[now - 100, now - 100, now]]);
  // Another one before that makes it longer.
  expect(await resume({ feedIds: [first], from: now - 200 })).toEqual([[now - 200, now - 200, now]]);
  expect(await resume({ feedIds: [first], filled: new Map([[first, now - 100]]) })).toEqual([
    [now - 200, now - 200, now],
  ]);
  expect(await resume({ feedIds: [first], filled: new Map([[first, now]]) })).toEqual([[now - 200, now + 2, null]]);
});

test('mirror: what was stored before it was mirrored counts as copied, and time before it is open', async () => {
  await append(first, now - 50, now - 49);
  await append(second, now - 50);
  expect(await resume({ feedIds: [first] })).toEqual([[now - 50, now - 48, null]]);
  expect(await resume({ from: now - 90 })).toEqual([
    [now - 90, now - 90, now - 50],
    [now - 90, now - 90, now - 50],
  ]);
});

test('mirror: restart reads everything again, from the beginning after every interruption, until it is filled', async () => {
  await resume({ feedIds: [first], from: now - 100 });
  await append(first, now - 100, now - 10);
  expect(await resume({ feedIds: [first], from: now - 90, restart: true })).toEqual([[now - 90, now - 90, now - 9]]);
  expect(await resume({ feedIds: [first] })).toEqual([[now - 90, now - 90, now - 9]]);
  expect(await resume({ feedIds: [first], filled: new Map([[first, now - 9]]) })).toEqual([[now - 90, now - 9, null]]);
});

test('mirror: a stream that ended long ago resumes no earlier than retention, and moves no other stream', async () => {
  await resume({ from: now - 10 * day });
  await append(first, now - 9 * day);
  await append(second, now - 1);
  expect(await resume({}, now + 25 * day)).toEqual([
    [now - 10 * day, now - 5 * day + 60, null],
    [now - 10 * day, now, null],
  ]);
});

test('mirror: a second of a millisecond stream is read again, because it may have more reports', async () => {
  await append(fine, now - 5);
  expect(await resume({ feedIds: [fine] })).toEqual([[now - 5, now - 5, null]]);
});

test('mirror: unknown and decommissioned streams are named, and nothing is remembered of them', async () => {
  const ended = testStream(second, { status: 'decommissioned', decommissionedAt: '2026-01-01T00:00:00.000000Z' });
  await current().admin.update('stream', [second], () => [ended], act);
  const context = { store: current(), nowMs: now * 1_000, retentionDays: 1, actor: 'test' };
  const places = await resumeMirror(context, { source: 'there', feedIds: [secondStream(9), second], from: now - 5 });
  const nothing = { from: null, start: null, until: null };
  expect(places).toEqual([
    { feedId: secondStream(9), status: null, ...nothing },
    { feedId: second, status: 'decommissioned', ...nothing },
  ]);
  expect(await current().admin.list('mirror')).toEqual([]);
});

test('mirror: the audit log has an entry when something is remembered, and none when nothing changes', async () => {
  const entries = async () =>
    (await current().admin.auditAfter(0, 100)).filter(({ action }) => action === 'mirror.resume');
  await resume({ from: now - 5 });
  await resume({});
  expect((await entries()).map(({ actor, detail }) => [actor, detail])).toEqual([
    ['test', { source: 'there', from: now - 5, streams: 2 }],
  ]);
});
