// Where a mirror resumes: for each stream the remembered start and the first second that is not copied yet (D102). The target answers this,
// so that a copy resumes correctly from any machine, with any --from.
import { isDeepStrictEqual } from 'node:util';
import { type FeedId, type StreamStatus, timeResolutionOf } from '@sealpost/protocol';
import { retentionEdgeMs } from '../store/retention.ts';
import type { MirroredStream, OpenRange, Store } from '../store/store.ts';

/** What a mirror says when it starts, and again after every interruption. */
export type MirrorRequest = {
  /** Host of the server that is copied. */
  readonly source: string;
  readonly feedIds: readonly FeedId[];
  /** First second that was asked for. Earlier than the remembered start: it moves back. Later: it stays. */
  readonly from?: number | undefined;
  /** Forget the remembered start, and copy everything from `from` again. */
  readonly restart?: boolean | undefined;
  /** Open ranges that were read to their end: feed id → `until`. */
  readonly filled?: ReadonlyMap<FeedId, number> | undefined;
  /** Reports that were rejected and may be accepted now, although later ones are stored: feed id → the first second of them. */
  readonly missing?: ReadonlyMap<FeedId, number> | undefined;
};

/** Where one stream resumes. */
export type MirrorPlace = {
  readonly feedId: FeedId;
  /** Null: the stream is not in the target's catalog. Null and `decommissioned` take no reports, and have no other field. */
  readonly status: StreamStatus | null;
  /** First second that is copied. */
  readonly from: number | null;
  /** First second to read. */
  readonly start: number | null;
  /** Read to before this second, report it as filled, and ask again; null: to the newest report, then live. */
  readonly until: number | null;
};

export type MirrorContext = {
  readonly store: Pick<Store, 'reports' | 'admin'>;
  readonly nowMs: number;
  /** Older reports are rejected, so nothing before is read. */
  readonly retentionDays: number;
  /** Who asks, for the audit log. */
  readonly actor: string;
};

/** Streams that one mirror may copy; the parser of a request rejects more. */
export const mirrorStreamsMax = 10_000;

/** Open ranges of a stream: one for each time that the start was moved back before the last one was filled. */
const openRangesMax = 16;

/** A report this close to the end of retention may expire on the way. */
const retentionMarginMs = 60_000;

/** Remembers the start of each stream, and says where it resumes. In the order asked for. Durable when it resolves. */
export const resumeMirror = async (context: MirrorContext, request: MirrorRequest): Promise<readonly MirrorPlace[]> => {
  const { admin } = context.store;
  const [streams, mirrored] = await Promise.all([admin.list('stream'), admin.list('mirror')]);
  const statuses = new Map(streams.map(({ feedId, status }) => [feedId, status]));
  const known = new Map(mirrored.map((record) => [record.feedId, record]));
  const sameSource = mirrored.filter(({ source }) => source === request.source).map(({ from }) => from);
  const fallback = sameSource.length === 0 ? Math.floor(context.nowMs / 1_000) : Math.min(...sameSource);
  const isCopied = (feedId: FeedId) => !['decommissioned', undefined].includes(statuses.get(feedId));
  const records = new Map<FeedId, MirroredStream>();
  for (const feedId of request.feedIds.filter(isCopied))
    records.set(feedId, await planRecord(context, request, feedId, known.get(feedId), fallback));
  await saveRecords(context, request, [...records.values()], known);
  return Promise.all(
    request.feedIds.map(async (feedId) => {
      const status = statuses.get(feedId) ?? null;
      const record = records.get(feedId);
      if (record === undefined) return { feedId, status, from: null, start: null, until: null };
      return { feedId, status, from: record.from, ...(await findPlace(context, record)) };
    }),
  );
};

const planRecord = async (
  context: MirrorContext,
  request: MirrorRequest,
  feedId: FeedId,
  before: MirroredStream | undefined,
  fallback: number,
): Promise<MirroredStream> => {
  const { source, filled, missing, from: asked, restart = false } = request;
  if (restart) return planAgain(context, feedId, source, asked ?? before?.from ?? fallback);
  if (before === undefined) return planNew(context, feedId, source, asked, fallback);
  const unfilled = before.open.filter(({ until }) => until !== filled?.get(feedId));
  const open = openMissing(context, feedId, unfilled, missing?.get(feedId));
  if (asked === undefined || asked >= before.from) return { ...before, source, open };
  return {
    feedId,
    source,
    from: asked,
    open: limitRanges([{ from: asked, until: before.from, reread: false }, ...open]),
  };
};

/** What is stored of a stream that was not mirrored before is taken to be without gaps. */
const planNew = async (
  { store }: MirrorContext,
  feedId: FeedId,
  source: string,
  asked: number | undefined,
  fallback: number,
): Promise<MirroredStream> => {
  const { next } = await store.reports.neighbours(feedId, 0);
  if (next === undefined) return { feedId, source, from: asked ?? fallback, open: [] };
  const oldest = Math.floor(next.observationsMs / 1_000);
  if (asked === undefined || asked >= oldest) return { feedId, source, from: oldest, open: [] };
  return { feedId, source, from: asked, open: [{ from: asked, until: oldest, reread: false }] };
};

const planAgain = ({ store }: MirrorContext, feedId: FeedId, source: string, from: number): MirroredStream => {
  const newestMs = store.reports.latest(feedId)?.observationsMs;
  const until = newestMs === undefined ? 0 : Math.floor(newestMs / 1_000) + 1;
  return { feedId, source, from, open: until > from ? [{ from, until, reread: true }] : [] };
};

/** Opens the time from a second to the newest report again. Without a later report no range is needed: the stream resumes there. */
const openMissing = (
  { store }: MirrorContext,
  feedId: FeedId,
  open: readonly OpenRange[],
  from: number | undefined,
): readonly OpenRange[] => {
  const newestMs = store.reports.latest(feedId)?.observationsMs;
  if (from === undefined || newestMs === undefined || newestMs < from * 1_000) return open;
  const before = open.filter((range) => range.from < from);
  const until = Math.max(Math.floor(newestMs / 1_000) + 1, ...open.map((range) => range.until));
  return limitRanges([
    ...before.map((range) => ({ ...range, until: Math.min(range.until, from) })),
    { from, until, reread: true },
  ]);
};

/** Merges the newest ranges where there are too many; what is stored between them is read again. */
const limitRanges = (ranges: readonly OpenRange[]): readonly OpenRange[] => {
  const [first, last] = [ranges[openRangesMax - 1], ranges.at(-1)];
  if (ranges.length <= openRangesMax || first === undefined || last === undefined) return ranges;
  return [...ranges.slice(0, openRangesMax - 1), { from: first.from, until: last.until, reread: true }];
};

const saveRecords = async (
  { store, nowMs, actor }: MirrorContext,
  { source }: MirrorRequest,
  records: readonly MirroredStream[],
  known: ReadonlyMap<FeedId, MirroredStream>,
): Promise<void> => {
  const changed = records.filter((record) => !isDeepStrictEqual(record, known.get(record.feedId)));
  if (changed.length === 0) return;
  const from = Math.min(...changed.map((record) => record.from));
  const detail = { source, from, streams: changed.length };
  const keyed = changed.map((record) => ({ kind: 'mirror' as const, key: record.feedId, record }));
  await store.admin.put(keyed, { atMs: nowMs, actor, action: 'mirror.resume', detail });
};

/** The first second that may hold a report after this one. A second of a stream that counts milliseconds may have more. */
const secondAfter = (feedId: FeedId, observationsMs: number): number =>
  Math.floor(observationsMs / 1_000) + (timeResolutionOf(feedId) === 'milliseconds' ? 0 : 1);

const findPlace = async (
  context: MirrorContext,
  { feedId, from, open }: MirroredStream,
): Promise<{ readonly start: number; readonly until: number | null }> => {
  const { store } = context;
  const oldest = Math.ceil((retentionEdgeMs(context.nowMs, context.retentionDays) + retentionMarginMs) / 1_000);
  for (const range of open) {
    if (range.until <= oldest) continue;
    const { previous } = await store.reports.neighbours(feedId, range.until);
    const after = previous === undefined || range.reread ? 0 : secondAfter(feedId, previous.observationsMs);
    const start = Math.max(range.from, after, oldest);
    if (start < range.until) return { start, until: range.until };
  }
  const newestMs = store.reports.latest(feedId)?.observationsMs;
  const after = newestMs === undefined ? 0 : secondAfter(feedId, newestMs);
  return { start: Math.max(from, after, oldest), until: null };
};
