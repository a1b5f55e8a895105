// Runs of reports as the API sends them: rendered on first use and kept in memory up to a bound. A rendered run is used only while the checksum of its
// record is unchanged, so that no process serves what another has changed. A page with a corrupt report is assembled report by report, without it (D120).
import { type FeedId, timeResolutionOf } from '@sealpost/protocol';
import type { RecordBytes } from '../../format/record-bytes.ts';
import {
  createReportRenderer,
  renderedLength,
  renderReport,
  secondOf,
  wholeSecondsEnd,
} from '../../format/rendered-report.ts';
import { type Block, copyBlockIndex, openBlock } from '../../format/report-block.ts';
import { CorruptRecordError, type RenderedPage } from '../../store.ts';
import { viewRecord } from '../environment.ts';
import { keysFrom, streamOfKey } from '../report-tables.ts';
import { readPage } from './found-reports.ts';
import { type FoundRun, openRun, type ReportSource, requireStream, runsFrom } from './runs.ts';

/** Bytes of rendered runs that are kept at most: some 7,000 reports. */
const bytesKept = 12 * 1024 * 1024;

/** Pages that are kept until something is written; they hold on to their runs. */
const pagesKept = 32;

const comma = ','.charCodeAt(0);

/** Reports of a run that were first asked for together: side by side, each with a comma after it. */
type Piece = {
  readonly from: number;
  readonly to: number;
  /** Where each of them begins, and where the next one would. */
  readonly starts: readonly number[];
  readonly text: Buffer;
};

/**
 * A run, rendered as far as it was asked for; its record is read again for the rest. Every 30 MB or so that are made of either have V8 collect
 * its garbage, which is a fifth of what a page costs that is asked for once.
 */
type RenderedRun = {
  readonly checksum: number;
  readonly index: Pick<Block, 'count' | 'window' | 'firstAtOrAfter'>;
  readonly pieces: Piece[];
  bytes: number;
};

const renderPiece = (feedId: FeedId, block: Block, from: number, to: number): Piece => {
  const starts = [0];
  let end = 0;
  for (let i = from; i < to; i++) {
    end += renderedLength(feedId, block.window(i), block.fullReportBytes(i)) + 1;
    starts.push(end);
  }
  const text = Buffer.allocUnsafeSlow(end);
  const writeReport = createReportRenderer(feedId);
  for (let i = from; i < to; i++) {
    const window = block.window(i);
    text[writeReport(text, starts[i - from] as number, window, block.readShared(i, window).digits)] = comma; // one start each
  }
  return { from, to, starts, text };
};

/** The reports from one index up to another, without the last comma; what is missing is rendered. */
const cutRun = (run: RenderedRun, from: number, to: number, render: (from: number, to: number) => Piece): Buffer[] => {
  const cuts: Buffer[] = [];
  let at = from;
  while (at < to) {
    const known = run.pieces.find((piece) => piece.from <= at && at < piece.to);
    const nextKnown = run.pieces.reduce((first, piece) => (piece.from > at ? Math.min(first, piece.from) : first), to);
    const piece = known ?? render(at, nextKnown);
    const end = Math.min(to, piece.to);
    cuts.push(piece.text.subarray(piece.starts[at - piece.from], (piece.starts[end - piece.from] as number) - 1)); // one start each
    at = end;
  }
  return cuts;
};

// A run's first word covers its index, which holds the checksum of each report.
const checksumOf = (value: RecordBytes): number => (value.length < 4 ? -1 : value.readUInt32BE(0));

/** Runs by key, those used last: when half of the bound is used up, what was not asked for since is forgotten. */
const createKept = (bytesMax: number) => {
  let young = new Map<string, RenderedRun>();
  let old = new Map<string, RenderedRun>();
  let youngBytes = 0;
  const keep = (key: string, run: RenderedRun): void => {
    if (youngBytes > bytesMax / 2) {
      old = young;
      young = new Map();
      youngBytes = 0;
    }
    young.set(key, run);
    youngBytes += run.bytes;
  };
  return {
    get: (key: string): RenderedRun | undefined => {
      const known = young.get(key);
      if (known !== undefined) return known;
      const older = old.get(key);
      if (older !== undefined) keep(key, older);
      return older;
    },
    keep,
    /** Counts what was added to one that was just given or kept. */
    grow: (run: RenderedRun, bytes: number): void => {
      run.bytes += bytes;
      youngBytes += bytes;
    },
  };
};

type Segment = {
  readonly run: RenderedRun;
  /** The record behind it, without a copy: the next read overwrites it. */
  readonly view: () => RecordBytes;
  readonly from: number;
  readonly to: number;
};

/**
 * Makes a reader of rendered pages. `newestMs` is when the stream was last observed; `renew` begins a new snapshot; `writes` is how often the
 * store was written, for the process that alone writes it: what many ask for between two writes is looked up once.
 */
export const createPageRenderer = (
  source: ReportSource,
  newestMs: (stream: number) => number | undefined,
  renew: () => void,
  writes: () => number | undefined,
) => {
  const render = createRunPages(source, newestMs);
  const pages = new Map<string, RenderedPage>();
  let writesSeen: number | undefined;
  return (feedId: FeedId, fromSeconds: number, limit: number): RenderedPage => {
    const written = writes();
    if (written !== writesSeen || pages.size > pagesKept) pages.clear();
    writesSeen = written;
    const key = `${feedId} ${fromSeconds} ${limit}`;
    const known = pages.get(key);
    if (known !== undefined) return known;
    renew();
    const page = render(feedId, fromSeconds, limit);
    if (written !== undefined) pages.set(key, page); // others cannot know when it is out of date
    return page;
  };
};

type RunRecord = Pick<FoundRun, 'table' | 'key' | 'view'>;

/** Every run of a stream that ends at or after a moment, by bare look-ups, which a damaged key can mislead. */
function* plainRuns({ tables }: ReportSource, stream: number, ms: number): Generator<RunRecord> {
  for (const table of ['blocks', 'tail'] as const) {
    for (const key of tables[table].getKeys(keysFrom(stream, ms))) {
      if (streamOfKey(key) !== stream) return; // what is missing then is searched for
      yield { table, key, view: () => viewRecord(tables[table], key) ?? Buffer.alloc(0) };
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
const createRunPages = (source: ReportSource, newestMs: (stream: number) => number | undefined) => {
  const kept = createKept(bytesKept);

  /** A run that is known by its checksum was opened before; another one is opened now, which throws where it is damaged. */
  const runAt = (stream: number, { table, key, view }: RunRecord): RenderedRun => {
    requireStream(key, stream);
    const value = view();
    const name = `${table}${key.toString('latin1')}`;
    const known = kept.get(name);
    const checksum = checksumOf(value);
    if (known?.checksum === checksum) return known;
    openRun(key, value);
    const index = copyBlockIndex(value);
    const run = { checksum, index: openBlock(stream, index), pieces: [], bytes: index.length };
    kept.keep(name, run);
    return run;
  };

  const cut = (feedId: FeedId, stream: number, { run, view, from, to }: Segment): Buffer[] =>
    cutRun(run, from, to, (start, end) => {
      const piece = renderPiece(feedId, openBlock(stream, view()), start, end);
      run.pieces.push(piece);
      kept.grow(run, piece.text.length);
      return piece;
    });

  const collect = (stream: number, runs: Iterable<RunRecord>, fromSeconds: number, limit: number) => {
    const found: Segment[] = [];
    let wanted = limit + 1; // one more tells whether there is more
    for (const one of runs) {
      const run = runAt(stream, one);
      requireAfter(found.at(-1)?.run, run);
      const from = run.index.firstAtOrAfter(fromSeconds * 1_000);
      const to = Math.min(run.index.count, from + wanted);
      found.push({ run, view: one.view, from, to });
      wanted -= to - from;
      if (wanted === 0) break;
    }
    return { found, more: wanted === 0 };
  };

  const renderRuns = (feedId: FeedId, stream: number, fromSeconds: number, limit: number): RenderedPage => {
    const plain = collect(stream, plainRuns(source, stream, fromSeconds * 1_000), fromSeconds, limit);
    const isWhole =
      isGapless(feedId, plain.found, fromSeconds) && (plain.more || endsAt(plain.found, newestMs(stream)));
    const all = () => collect(stream, runsFrom(source.tables, stream, fromSeconds * 1_000), fromSeconds, limit);
    const { found, more } = isWhole ? plain : all();
    const segments = more ? takeWholeSeconds(found, limit) : found;
    const last = segments.at(-1);
    return {
      json: segments.flatMap((segment) => cut(feedId, stream, segment)),
      lastMs: last?.run.index.window(last.to - 1).observationsMs,
      more,
    };
  };

  return (feedId: FeedId, fromSeconds: number, limit: number): RenderedPage => {
    const stream = source.directory.numberOf(feedId);
    if (stream === undefined) return { json: [], lastMs: undefined, more: false };
    try {
      return renderRuns(feedId, stream, fromSeconds, limit);
    } catch (error) {
      if (!(error instanceof CorruptRecordError)) throw error;
      return renderIntact(source, feedId, stream, fromSeconds, limit);
    }
  };
};

/**
 * Does the first run begin before the page does, and each later one where the one before ends? Then no run is hidden between them. Windows of a
 * stream never overlap, and lie one unit of its clock apart at least.
 */
const isGapless = (feedId: FeedId, segments: readonly Segment[], fromSeconds: number): boolean => {
  const unitMs = timeResolutionOf(feedId) === 'seconds' ? 1_000 : 1;
  return segments.every(({ run, from }, i) => {
    const { validFromMs } = run.index.window(0);
    const before = segments[i - 1]?.run.index;
    if (before === undefined) return from > 0 || validFromMs <= fromSeconds * 1_000;
    return validFromMs === before.window(before.count - 1).observationsMs + unitMs;
  });
};

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
): RenderedPage => {
  const { reports, more } = readPage(source, feedId, stream, fromSeconds, limit);
  return {
    json: reports.map((report) => Buffer.from(renderReport(report), 'latin1')),
    lastMs: reports.at(-1)?.observationsMs,
    more,
    damaged: true,
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
