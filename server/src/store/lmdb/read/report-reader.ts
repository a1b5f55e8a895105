// Reads reports from LMDB: synchronous, on one snapshot per call, so that a run that closes meanwhile is seen in one place. Used by every process, and by
// the writer in its transactions. Corrupt reports are noted and treated as missing (D120).
import type { FeedId } from '@sealpost/protocol';
import type { AtOnceOrLater, InSlices } from '../../../runtime/reading.ts';
import type { CandleRange, CandleSlice } from '../../candle-rollup.ts';
import { renderReport, secondOf } from '../../format/rendered-report.ts';
import type {
  Appended,
  AppendedFilter,
  LatestReport,
  Neighbours,
  RenderedReport,
  StoredReport,
  Window,
} from '../../store.ts';
import { readCandles } from '../candles.ts';
import { changesOf, lastPosition } from '../report-tables.ts';
import { readAppended } from './appended-reports.ts';
import { findAt, findNeighbours, findQuickly, readFrom } from './found-reports.ts';
import { createLatestReader, createNewestReader } from './latest.ts';
import { createPageRenderer } from './rendered-runs.ts';
import { noteRun, type ReportSource, runsFrom } from './runs.ts';
import { isLost } from './set-aside.ts';

/**
 * Makes a reader. `renew` begins a new snapshot; inside a write transaction it does nothing. `writes` is how often the store was written,
 * for the process that alone writes it; others are never told.
 */
export const createReportReader = (
  source: ReportSource,
  renew: () => void,
  writes: () => number | undefined = () => undefined,
) => {
  const { tables, damage, directory } = source;
  const streamOf = directory.numberOf;
  const onSnapshot = <T>(feedId: FeedId, missing: T, read: (stream: number) => T): T => {
    renew();
    const stream = streamOf(feedId);
    return stream === undefined ? missing : read(stream);
  };
  const latestOf = createLatestReader(source);
  const newestMs = createNewestReader(source);
  /** The newest report where a second is after it and nothing is damaged behind it: no search is needed. */
  const newestBefore = (feedId: FeedId, stream: number, seconds: number): Window | undefined => {
    const { report, isLast } = latestOf(feedId, stream);
    if (report === undefined || !isLast || secondOf(report.observationsMs) >= seconds) return undefined;
    const { validFromMs, observationsMs } = report;
    return { validFromMs, observationsMs };
  };
  const at = (feedId: FeedId, stream: number, seconds: number): StoredReport | undefined =>
    findQuickly(source, feedId, stream, seconds) ??
    (newestBefore(feedId, stream, seconds) === undefined ? findAt(source, feedId, stream, seconds) : undefined);
  const lately = new Map<FeedId, { readonly writes: number; readonly report: LatestReport | undefined }>();
  return {
    streamOf,
    latest: (feedId: FeedId): LatestReport | undefined => {
      // The one that writes knows when nothing was written since it looked.
      const now = writes();
      const known = now === undefined ? undefined : lately.get(feedId);
      if (known !== undefined && known.writes === now) return known.report;
      const report = onSnapshot<LatestReport | undefined>(
        feedId,
        undefined,
        (stream) => latestOf(feedId, stream).report,
      );
      if (now !== undefined) lately.set(feedId, { writes: now, report });
      return report;
    },
    newestMs: (feedId: FeedId): number | undefined => onSnapshot(feedId, undefined, newestMs),
    at: (feedId: FeedId, seconds: number): StoredReport | undefined =>
      onSnapshot(feedId, undefined, (stream) => at(feedId, stream, seconds)),
    neighbours: (feedId: FeedId, seconds: number): Neighbours =>
      onSnapshot<Neighbours>(feedId, { previous: undefined, next: undefined }, (stream) => {
        const previous = newestBefore(feedId, stream, seconds);
        if (previous === undefined) return findNeighbours(source, stream, seconds);
        const damaged = isLost(tables, stream, seconds * 1_000);
        return { previous, next: undefined, ...(damaged && { damaged }) };
      }),
    from: (feedId: FeedId, fromMs: number, limit: number): readonly StoredReport[] =>
      onSnapshot<readonly StoredReport[]>(feedId, [], (stream) => readFrom(source, feedId, stream, fromMs, limit)),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number): readonly Window[] =>
      onSnapshot<readonly Window[]>(feedId, [], (stream) => {
        const windows: Window[] = [];
        const endMs = (toSeconds + 1) * 1_000;
        let fromMs = fromSeconds * 1_000;
        for (const run of runsFrom(source.tables, stream, fromMs)) {
          noteRun(source, stream, run);
          const { block } = run;
          for (let i = block?.firstAtOrAfter(fromMs) ?? 0; block !== undefined && i < block.count; i++) {
            const window = block.window(i);
            if (windows.length === limit || window.observationsMs >= endMs) return windows;
            windows.push(window);
            fromMs = window.observationsMs + 1; // none twice, whatever is stored twice
          }
        }
        return windows;
      }),
    candles: (feedId: FeedId, range: CandleRange, isOver: () => boolean = () => false): CandleSlice =>
      onSnapshot<CandleSlice>(feedId, { candles: [] }, (stream) => readCandles(tables, stream, range, isOver, damage)),
    renderedAt: createMomentRenderer(source, at, renew, writes),
    renderedPage: createPageRenderer(source, newestMs, renew, writes),
    position: (): number => {
      renew();
      return lastPosition(tables, damage);
    },
    appendedAfter: (position: number, limit: number, filter?: AppendedFilter): Appended => {
      renew();
      return readAppended(source, position, limit, filter);
    },
  };
};

/** Rendered answers to `at` that are kept until something is written: some 7 MB. */
const momentsKept = 4_096;

/** Streams that are read at once: one takes 40 µs, or 100 where it has no report then. */
const renderedAtOnce = 32;

/**
 * Renders what holds at a second; many ask for the same one, so each is rendered once until something is written, and the same list of
 * feed ids gets the same list of reports.
 */
const createMomentRenderer = (
  source: ReportSource,
  at: (feedId: FeedId, stream: number, seconds: number) => StoredReport | undefined,
  renew: () => void,
  writes: () => number | undefined,
) => {
  type Moment = { readonly seconds: number; readonly found: readonly (RenderedReport | undefined)[] };
  let moments = new Map<number, RenderedReport | undefined>();
  let lists = new WeakMap<readonly FeedId[], Moment>();
  let changes = -1;
  let writesSeen: number | undefined;
  const forgetChanged = (): void => {
    // The one that writes knows when nothing was written since it looked.
    const written = writes();
    if (written !== undefined && written === writesSeen && moments.size <= momentsKept) return;
    renew();
    const now = changesOf(source.tables);
    if (now !== changes || moments.size > momentsKept) {
      moments = new Map(); // not cleared: D232
      lists = new WeakMap();
    }
    changes = now;
    writesSeen = written;
  };
  const renderOne = (feedId: FeedId, seconds: number): RenderedReport | undefined => {
    const stream = source.directory.numberOf(feedId);
    if (stream === undefined) return undefined;
    const moment = stream * 2 ** 32 + seconds;
    if (moments.has(moment)) return moments.get(moment);
    const report = at(feedId, stream, seconds);
    const rendered = report && {
      observationsMs: report.observationsMs,
      json: Buffer.from(renderReport(report), 'latin1'),
    };
    moments.set(moment, rendered);
    return rendered;
  };
  const renderInSlices = (feedIds: readonly FeedId[], seconds: number, inSlices: InSlices): Promise<Moment['found']> =>
    inSlices(async (slice) => {
      const found: (RenderedReport | undefined)[] = [];
      let begunWith: typeof lists | undefined;
      while (found.length < feedIds.length)
        await slice(async (isOver) => {
          forgetChanged();
          begunWith ??= lists;
          for (const feedId of feedIds.slice(found.length)) {
            found.push(renderOne(feedId, seconds));
            if (isOver()) break;
          }
        });
      if (lists === begunWith) lists.set(feedIds, { seconds, found }); // else something was written since the first was read
      return found;
    });
  return (
    feedIds: readonly FeedId[],
    seconds: number,
    inSlices?: InSlices,
  ): AtOnceOrLater<readonly (RenderedReport | undefined)[]> => {
    forgetChanged();
    const known = lists.get(feedIds);
    if (known?.seconds === seconds) return known.found;
    if (inSlices !== undefined && feedIds.length > renderedAtOnce) return renderInSlices(feedIds, seconds, inSlices);
    const found = feedIds.map((feedId) => renderOne(feedId, seconds));
    lists.set(feedIds, { seconds, found });
    return found;
  };
};
