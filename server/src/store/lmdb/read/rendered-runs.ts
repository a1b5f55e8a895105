// Runs of reports as the API sends them: rendered on first use and kept in memory up to a bound. A rendered run is used only while the checksum of its
// record is unchanged, and a page until a write may have changed it, so that no process serves what another has changed. A page with a corrupt report is assembled report by report, without it (D120).
import { type FeedId, timeResolutionOf } from '@sealpost/protocol';
import { createLastUsed } from '../../../runtime/kept-values.ts';
import type { RecordBytes } from '../../format/record-bytes.ts';
import { renderReport, secondOf, wholeSecondsEnd } from '../../format/rendered-report.ts';
import { copyBlockIndex } from '../../format/report-block.ts';
import { CorruptRecordError, type RenderedPage } from '../../store.ts';
import { keysFrom, streamOfKey } from '../report-tables.ts';
import { readPage } from './found-reports.ts';
import {
  bytesOf,
  createPieces,
  isThere,
  type MadePage,
  type Pieces,
  type RenderedRun,
  type Segment,
  type Wanted,
} from './rendered-pieces.ts';
import { type FoundRun, openRun, type ReportSource, requireStream, runsFrom, viewRun } from './runs.ts';
import { type SeenReports, stillHolds } from './seen-reports.ts';
import type { Lease } from './slabs.ts';

/** Runs whose indexes are kept, twice as many at most; each takes some 2 KB. */
const runsKept = 512;

/** Pages that are kept, twice as many at most. Their bytes are in slabs that are there anyway. */
const pagesKept = 128;

// A run's first word covers its index, which holds the checksum of each report.
const checksumOf = (value: RecordBytes): number => (value.length < 4 ? -1 : value.readUInt32BE(0));

/**
 * Makes a reader of rendered pages. `newestMs` is when the stream was last observed; `renew` begins a new snapshot; `look` is at the stored
 * reports. What many ask for is looked up once and put together once, until a write may have changed it.
 */
export const createPageRenderer = (
  source: ReportSource,
  newestMs: (stream: number) => number | undefined,
  renew: () => void,
  look: () => SeenReports,
) => {
  const pages = createLastUsed<string, { readonly page: MadePage; readonly seen: SeenReports }>(pagesKept);
  const pieces = createPieces(() => pages.retain(({ page }) => page.regions.every(isThere)));
  const render = createRunPages(source, newestMs, pieces);
  /** A page that is asked for again, in one piece from now on. */
  const again = (page: MadePage, lease: Lease): MadePage => {
    for (const { slab } of page.spans) lease.add(slab);
    const joined = page.body === undefined && page.spans.length > 0 ? pieces.join(page.spans) : undefined;
    if (joined === undefined) return page;
    const { span, body } = joined;
    lease.add(span.slab);
    return { ...page, json: [bytesOf(span)], body, spans: [span], regions: [joined] };
  };
  return (feedId: FeedId, fromSeconds: number, limit: number): RenderedPage => {
    const seen = look();
    const key = `${feedId} ${fromSeconds} ${limit}`;
    const before = pages.get(key);
    const known = before && stillHolds(before.seen, before.page.isSettled, seen) ? before.page : undefined;
    const lease = pieces.lease();
    try {
      const isKnown = known?.regions.every(isThere) === true;
      if (!isKnown) renew();
      const made = isKnown ? again(known, lease) : render(feedId, fromSeconds, limit, lease);
      if (made !== known && pieces.mayKeep(made)) pages.keep(key, { page: made, seen });
      const { json, body, lastMs, more, damaged } = made;
      return { json, body, lastMs, more, damaged, release: lease.release };
    } catch (error) {
      lease.release();
      throw error;
    }
  };
};

type RunRecord = Pick<FoundRun, 'table' | 'key' | 'view'>;

/** Every run of a stream that ends at or after a moment, by bare look-ups, which a damaged key can mislead. */
function* plainRuns({ tables }: ReportSource, stream: number, ms: number): Generator<RunRecord> {
  for (const table of ['blocks', 'tail'] as const) {
    for (const key of tables[table].getKeys(keysFrom(stream, ms))) {
      if (streamOfKey(key) !== stream) return; // what is missing then is searched for
      yield { table, key, view: () => viewRun(tables[table], key) };
    }
  }
}

// Read report by report, none of two runs that overlap is given twice.
const requireAfter = (before: RenderedRun | undefined, { index }: RenderedRun): void => {
  const beforeMs = before?.index.window(before.index.count - 1).observationsMs;
  if (beforeMs !== undefined && index.window(0).validFromMs <= beforeMs)
    throw new CorruptRecordError('two runs of a stream overlap');
};

/** Pages cut from rendered runs, of the present snapshot. */
const createRunPages = (source: ReportSource, newestMs: (stream: number) => number | undefined, pieces: Pieces) => {
  const kept = createLastUsed<string, RenderedRun>(runsKept);

  /** A run that is known by its checksum was opened before; another one is opened now, which throws where it is damaged. */
  const runAt = (stream: number, { table, key }: RunRecord, value: RecordBytes): RenderedRun => {
    requireStream(key, stream);
    const name = `${table}${key.toString('latin1')}`;
    const known = kept.get(name);
    const checksum = checksumOf(value);
    if (known?.checksum === checksum) return known;
    openRun(key, value);
    const run = { checksum, index: copyBlockIndex(value), pieces: [] };
    kept.keep(name, run);
    return run;
  };

  const renderRuns = (feedId: FeedId, stream: number, fromSeconds: number, limit: number, lease: Lease): MadePage => {
    const wanted = { feedId, stream, fromSeconds, limit };
    const page = pieces.beginPage(wanted, lease);
    const collect = (runs: Iterable<RunRecord>) => collectRuns(wanted, runs, runAt, page.cover);
    const plain = collect(plainRuns(source, stream, fromSeconds * 1_000));
    const isConnected = isGapless(feedId, plain.found, fromSeconds);
    const isWhole = isConnected && (plain.more || endsAt(plain.found, newestMs(stream)));
    const { found, more } = isWhole ? plain : collect(runsFrom(source.tables, stream, fromSeconds * 1_000));
    const segments = more ? takeWholeSeconds(found, limit) : found;
    const last = segments.at(-1);
    return {
      ...page.cut(segments),
      lastMs: last?.run.index.window(last.to - 1).observationsMs,
      more,
      isSettled: isConnected && plain.more && isDense(feedId, plain.found),
    };
  };

  return (feedId: FeedId, fromSeconds: number, limit: number, lease: Lease): MadePage => {
    const stream = source.directory.numberOf(feedId);
    if (stream === undefined)
      return { json: [], spans: [], regions: [], lastMs: undefined, more: false, isSettled: false };
    try {
      return renderRuns(feedId, stream, fromSeconds, limit, lease);
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      return renderIntact(source, feedId, stream, fromSeconds, limit);
    }
  };
};

/** The runs that a page is cut from, covered by rendered pieces as they are come across: their records are at hand only then. */
const collectRuns = (
  { stream, fromSeconds, limit }: Wanted,
  runs: Iterable<RunRecord>,
  runAt: (stream: number, record: RunRecord, value: RecordBytes) => RenderedRun,
  cover: (run: RenderedRun, value: RecordBytes, from: number, to: number) => Segment['pieces'],
): { readonly found: readonly Segment[]; readonly more: boolean } => {
  const found: Segment[] = [];
  let wanted = limit + 1; // one more tells whether there is more; it is not rendered
  for (const record of runs) {
    const value = record.view();
    const run = runAt(stream, record, value);
    requireAfter(found.at(-1)?.run, run);
    const from = run.index.firstAtOrAfter(fromSeconds * 1_000);
    const to = Math.min(run.index.count, from + wanted);
    wanted -= to - from;
    found.push({ run, from, to, pieces: cover(run, value, from, wanted === 0 ? to - 1 : to) });
    if (wanted === 0) break;
  }
  return { found, more: wanted === 0 };
};

/**
 * Does the first run begin before the page does, and each later one where the one before ends? Then no run is hidden between them. Windows of a
 * stream never overlap, and lie one unit of its clock apart at least.
 */
const isGapless = (feedId: FeedId, segments: readonly Segment[], fromSeconds: number): boolean => {
  const unitMs = unitMsOf(feedId);
  return segments.every(({ run, from }, i) => {
    const { validFromMs } = run.index.window(0);
    const before = segments[i - 1]?.run.index;
    if (before === undefined) return from > 0 || validFromMs <= fromSeconds * 1_000;
    return validFromMs === before.window(before.count - 1).observationsMs + unitMs;
  });
};

/** Does each report begin where the one before it in its run ends? Then none fits between them. */
const isDense = (feedId: FeedId, segments: readonly Segment[]): boolean => {
  const unitMs = unitMsOf(feedId);
  return segments.every(({ run: { index }, from, to }) => {
    for (let i = Math.max(1, from); i < to; i++) if (index.gapMs(i) !== unitMs) return false;
    return true;
  });
};

const unitMsOf = (feedId: FeedId): number => (timeResolutionOf(feedId) === 'seconds' ? 1_000 : 1);

const endsAt = (segments: readonly Segment[], newestMs: number | undefined): boolean => {
  const index = segments.at(-1)?.run.index;
  return index === undefined ? newestMs === undefined : index.window(index.count - 1).observationsMs === newestMs;
};

/** A page of what can be read: as many intact reports as asked for, so that it is short only where the stream ends. */
const renderIntact = (
  source: ReportSource,
  feedId: FeedId,
  stream: number,
  fromSeconds: number,
  limit: number,
): MadePage => {
  const { reports, more } = readPage(source, feedId, stream, fromSeconds, limit);
  return {
    json: reports.map((report) => Buffer.from(renderReport(report), 'latin1')),
    spans: [],
    regions: [],
    lastMs: reports.at(-1)?.observationsMs,
    more,
    damaged: true,
    isSettled: false,
  };
};

/** The second of the report with so many before it. */
const secondAt = (segments: readonly Segment[], index: number): number | undefined => {
  let before = 0;
  for (const { run, from, to } of segments) {
    if (index < before + to - from) return secondOf(run.index.window(from + index - before).observationsMs);
    before += to - from;
  }
  return undefined;
};

const takeWholeSeconds = (found: readonly Segment[], limit: number): readonly Segment[] =>
  takeReports(
    found,
    wholeSecondsEnd((i) => secondAt(found, i), limit),
  );

const takeReports = (segments: readonly Segment[], count: number): readonly Segment[] => {
  const taken: Segment[] = [];
  let left = count;
  for (const segment of segments) {
    if (left === 0) break;
    const { from } = segment;
    const end = Math.min(segment.to, from + left);
    taken.push({ ...segment, to: end });
    left -= end - from;
  }
  return taken;
};
