// Reports in memory: an ascending list per stream, and the order of appending. Every call is one step of the event loop, so each append and each
// read is of one state. Candles are computed from reports when they are asked for: a test has few of them.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type { FeedId } from '@sealpost/protocol';
import { judgeReport } from '../append-rules.ts';
import { positionsKept } from '../bounds.ts';
import { addCandle, type Candle, type CandleRange } from '../candle-rollup.ts';
import { renderLatest, renderReport, renderReports, secondOf, wholeSecondsEnd } from '../format/rendered-report.ts';
import { keepReport } from '../format/report-contents.ts';
import { searchFirst } from '../format/report-run.ts';
import type {
  Appended,
  AppendOutcome,
  LatestReport,
  NewReport,
  RenderedReport,
  ReportPage,
  ReportStore,
  Retention,
  ScanCursor,
  StoredReport,
  Trimmed,
  Window,
} from '../store.ts';
import { createListeners } from '../wake.ts';

/** Reports and roll-ups may use this much whatever retention says: 1 GiB. */
const bytesLimit = 2 ** 30;
/** What a report takes besides its bytes, roughly. */
const overheadBytes = 256;
/** Reports removed by one slice of retention. */
const sliceReports = 64;
const minuteSeconds = 60;

type Kept = { readonly report: StoredReport; readonly price: bigint | undefined; readonly position: number };

const windowOf = ({ report: { validFromMs, observationsMs } }: Kept): Window => ({ validFromMs, observationsMs });
const observedAt = (kept: readonly Kept[], i: number): number | undefined => kept[i]?.report.observationsMs;

/** Where the reports observed at or after a time begin. */
const firstObserved = (kept: readonly Kept[], ms: number): number =>
  searchFirst(kept.length, (i) => (observedAt(kept, i) ?? 0) >= ms);

/** All that is kept of reports. */
const createMemory = () => {
  const streams = new Map<FeedId, Kept[]>();
  /** By position, from the one after `forgotten`; undefined where retention removed the report. */
  let order: (Kept | undefined)[] = [];
  let forgotten = 0;
  let reports = 0;
  let reportBytes = 0;
  const position = (): number => forgotten + order.length;
  const of = (feedId: FeedId): readonly Kept[] => streams.get(feedId) ?? [];
  return {
    streams: streams as ReadonlyMap<FeedId, readonly Kept[]>, // for reading
    of,
    position,
    forgotten: () => forgotten,
    at: (wanted: number): Kept | undefined => order[wanted - forgotten - 1],
    stats: () => ({ streams: streams.size, reports, reportBytes, usedBytes: reportBytes + reports * overheadBytes }),
    add: ({ price, ...report }: NewReport): AppendOutcome => {
      const known = streams.get(report.feedId) ?? [];
      const i = firstObserved(known, report.observationsMs);
      const rejected = judgeReport(
        report,
        known.slice(Math.max(0, i - 1), i + 1).map((kept) => kept.report),
      );
      if (rejected !== undefined) return rejected;
      const kept = { report: keepReport(report), price, position: position() + 1 };
      known.splice(i, 0, kept);
      streams.set(report.feedId, known);
      order.push(kept);
      reports += 1;
      reportBytes += report.fullReport.length;
      // Cut now and then, not at every report.
      const excess = order.length - positionsKept;
      if (excess > positionsKept / 16) {
        order = order.slice(excess);
        forgotten += excess;
      }
      return 'stored';
    },
    /** Removes the oldest reports of a stream. */
    remove: (feedId: FeedId, count: number): void => {
      const known = streams.get(feedId) ?? [];
      for (const kept of known.splice(0, count)) {
        if (kept.position > forgotten) order[kept.position - forgotten - 1] = undefined;
        reports -= 1;
        reportBytes -= kept.report.fullReport.length;
      }
      if (known.length === 0) streams.delete(feedId);
    },
  };
};

type Memory = ReturnType<typeof createMemory>;

/** The reports of one store in memory, for all who opened it. */
export function createMemoryReports(): ReportStore {
  const memory = createMemory();
  const appended = createListeners();
  const lineage = { epoch: randomBytes(6), key: randomBytes(16) };
  const rendered = new Map<FeedId, { readonly kept: Kept; readonly latest: LatestReport }>();
  const latest = (feedId: FeedId): LatestReport | undefined => {
    const kept = memory.of(feedId).at(-1);
    if (kept === undefined) return undefined;
    const known = rendered.get(feedId);
    if (known?.kept === kept) return known.latest;
    const fresh = { kept, latest: renderLatest(kept.report) };
    rendered.set(feedId, fresh);
    return fresh.latest;
  };
  const at = (feedId: FeedId, seconds: number): StoredReport | undefined => {
    const known = memory.of(feedId);
    const report = known[firstObserved(known, seconds * 1_000)]?.report;
    return report !== undefined && secondOf(report.validFromMs) <= seconds ? report : undefined;
  };
  return {
    append: async (batch) => {
      const outcomes = batch.map(memory.add);
      if (outcomes.includes('stored')) appended.wake();
      return outcomes;
    },
    confirm: async () => {},
    latest,
    newestMs: (feedId) => memory.of(feedId).at(-1)?.report.observationsMs,
    at: async (feedIds, seconds) => feedIds.map((feedId) => at(feedId, seconds)),
    neighbours: async (feedId, seconds) => {
      const known = memory.of(feedId);
      const i = firstObserved(known, seconds * 1_000);
      const [previous, next] = [known[i - 1], known[i]];
      return { previous: previous && windowOf(previous), next: next && windowOf(next) };
    },
    page: async (feedId, fromSeconds, limit) => readPage(memory.of(feedId), fromSeconds, limit),
    renderedAt: async (feedIds, seconds) => feedIds.map((feedId) => render(at(feedId, seconds))),
    renderedPage: async (feedId, fromSeconds, limit) => {
      const { reports, more } = readPage(memory.of(feedId), fromSeconds, limit);
      return { json: renderReports(reports), lastMs: reports.at(-1)?.observationsMs, more };
    },
    windows: async (feedId, fromSeconds, toSeconds, limit) => {
      const known = memory.of(feedId);
      const [from, end] = [firstObserved(known, fromSeconds * 1_000), firstObserved(known, (toSeconds + 1) * 1_000)];
      return known.slice(from, Math.min(end, from + limit)).map(windowOf);
    },
    candles: async (feedId, range) => readCandles(memory.of(feedId), range),
    appendedAfter: async (position, limit, feedIds) => readAppended(memory, position, limit, feedIds),
    position: async () => memory.position(),
    lineage: async () => lineage,
    onAppended: appended.listen,
    checkAppended: () => {}, // an append wakes the listeners of all
    trim: async (retention) => trimSlice(memory, retention),
    scan: async (cursor, limit) => scanSlice(memory, cursor, limit),
    stats: async () => ({ ...memory.stats(), fileBytes: 0 }),
  };
}

const render = (report: StoredReport | undefined): RenderedReport | undefined =>
  report && { observationsMs: report.observationsMs, json: Buffer.from(renderReport(report), 'latin1') };

const readPage = (known: readonly Kept[], fromSeconds: number, limit: number): ReportPage => {
  const from = firstObserved(known, fromSeconds * 1_000);
  const more = known.length - from > limit;
  const secondAt = (i: number) => secondOf(observedAt(known, from + i) ?? 0);
  const end = more ? from + wholeSecondsEnd(secondAt, limit) : known.length;
  return { reports: known.slice(from, end).map(({ report }) => report), more };
};

const readCandles = (known: readonly Kept[], { from, to, resolution }: CandleRange): readonly Candle[] => {
  const candles: Candle[] = [];
  const firstMinute = Math.ceil(from / minuteSeconds) * minuteSeconds;
  for (const { report, price } of known.slice(firstObserved(known, firstMinute * 1_000))) {
    const minute = Math.floor(report.observationsMs / 1_000 / minuteSeconds) * minuteSeconds;
    if (minute > to) break;
    const start = Math.floor(minute / resolution) * resolution;
    if (price !== undefined)
      addCandle(candles, { start, open: price, high: price, low: price, close: price, reports: 1 });
  }
  return candles;
};

const readAppended = (
  memory: Memory,
  position: number,
  limit: number,
  feedIds: ReadonlySet<FeedId> | undefined,
): Appended => {
  const missed = position < memory.forgotten();
  const found: Kept[] = [];
  let reached = Math.max(position, memory.forgotten());
  while (reached < memory.position() && found.length < limit) {
    reached += 1;
    const kept = memory.at(reached);
    if (kept !== undefined && (feedIds?.has(kept.report.feedId) ?? true)) found.push(kept);
  }
  return {
    reports: found.map(({ report }) => report),
    positions: found.map((kept) => kept.position),
    position: reached,
    missed,
  };
};

/** Removes the oldest reports of the stream that has the oldest one. */
const trimSlice = (memory: Memory, { beforeMs, bytesMax }: Retention): Trimmed => {
  const isFull = memory.stats().usedBytes > Math.min(bytesMax, bytesLimit);
  let oldest: { readonly feedId: FeedId; readonly atMs: number; readonly count: number } | undefined;
  for (const [feedId, known] of memory.streams) {
    const atMs = observedAt(known, 0) ?? 0;
    // By bytes every stream keeps its newest report.
    const count = atMs < beforeMs ? firstObserved(known, beforeMs) : isFull ? known.length - 1 : 0;
    if (count > 0 && atMs < (oldest?.atMs ?? Number.POSITIVE_INFINITY)) oldest = { feedId, atMs, count };
  }
  if (oldest === undefined) return { removed: 0, more: false };
  const removed = Math.min(oldest.count, sliceReports);
  const endMs = (observedAt(memory.of(oldest.feedId), removed - 1) ?? 0) + 1;
  memory.remove(oldest.feedId, removed);
  return { removed, more: true, endMs };
};

const scanSlice = (memory: Memory, cursor: ScanCursor | undefined, limit: number) => {
  const [, afterFeed = '', afterMs = '-1'] = /^(0x[0-9a-f]+):([0-9]+)$/.exec(cursor ?? '0x0:0') ?? [];
  assert(afterFeed !== '', `${cursor} is not a cursor of a scan`);
  const found: StoredReport[] = [];
  for (const feedId of [...memory.streams.keys()].sort()) {
    if (feedId < afterFeed) continue;
    const known = memory.of(feedId);
    const from = feedId === afterFeed ? firstObserved(known, Number(afterMs) + 1) : 0;
    found.push(...known.slice(from, from + limit - found.length).map(({ report }) => report));
    if (found.length === limit) break;
  }
  const last = found.length === limit ? found.at(-1) : undefined;
  return {
    entries: found.map((report) => ({ report })),
    ...(last && { next: `${last.feedId}:${last.observationsMs}` }),
  };
};
