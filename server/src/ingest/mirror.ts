// Where a mirror resumes: for each stream the remembered start and the first second that is not copied yet (D102). The target answers this,
// so that a copy resumes correctly from any machine, with any --from.
import { isDeepStrictEqual } from 'node:util';
import { type FeedId, type StreamStatus, timeResolutionOf } from '@sealpost/protocol';
import { retentionEdgeMs } from '../store/retention.ts';
import type { MirroredStream, Store } from '../store/store.ts';

/** What a mirror says when it starts, and again after every interruption. */
export type MirrorRequest = {
  /** Host of the server that is copied. */
  readonly source: string;
  readonly feedIds: readonly FeedId[];
  /** First second that was asked for. Earlier than the remembered start: it moves back. Later: it stays. */
  readonly from?: number | undefined;
  /** Forget the remembered start, and copy everything from `from` again. */
  readonly restart?: boolean | undefined;
  /** Streams whose open range was read to its end: feed id → `until`. */
  readonly filled?: ReadonlyMap<FeedId, number> | undefined;
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

/** A report this close to the end of retention may expire on the way. */
const retentionMarginMs = 60_000;

/** Remembers the start of each stream, and says where it resumes. In the order asked for. Durable when it resolves. */
export async function resumeMirror(context: MirrorContext, request: MirrorRequest): Promise<readonly MirrorPlace[]> {
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
  return request.feedIds.map((feedId) => {
    const status = statuses.get(feedId) ?? null;
    const record = records.get(feedId);
    if (record === undefined) return { feedId, status, from: null, start: null, until: null };
    return { feedId, status, from: record.from, ...findPlace(context, record) };
  });
}

const planRecord = async (
  context: MirrorContext,
  request: MirrorRequest,
  feedId: FeedId,
  before: MirroredStream | undefined,
  fallback: number,
): Promise<MirroredStream> => {
  const { source, filled, from: asked, restart = false } = request;
  if (restart) return planAgain(context, feedId, source, asked ?? before?.from ?? fallback);
  if (before === undefined) return planNew(context, feedId, source, asked, fallback);
  const open = before.open.filter(({ until }) => until !== filled?.get(feedId));
  if (asked === undefined || asked >= before.from) return { ...before, source, open };
  // What is stored between is read again: one range, not a list of those that are left.
  return { feedId, source, from: asked, open: [{ from: asked, until: open[0]?.until ?? before.from }] };
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
  return { feedId, source, from: asked, open: [{ from: asked, until: oldest }] };
};

const planAgain = ({ store }: MirrorContext, feedId: FeedId, source: string, from: number): MirroredStream => {
  const newestMs = store.reports.latest(feedId)?.observationsMs;
  const until = newestMs === undefined ? 0 : Math.floor(newestMs / 1_000) + 1;
  return { feedId, source, from, open: until > from ? [{ from, until }] : [] };
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

const findPlace = (
  { store, nowMs, retentionDays }: MirrorContext,
  { feedId, from, open }: MirroredStream,
): Pick<MirrorPlace, 'start' | 'until'> => {
  const oldest = Math.ceil((retentionEdgeMs(nowMs, retentionDays) + retentionMarginMs) / 1_000);
  const [range] = open;
  if (range !== undefined && range.until > oldest) return { start: Math.max(range.from, oldest), until: range.until };
  const newestMs = store.reports.latest(feedId)?.observationsMs;
  const after = newestMs === undefined ? 0 : secondAfter(feedId, newestMs);
  return { start: Math.max(from, after, oldest), until: null };
};
