// Owns runs of reports as the API sends them: rendered when first asked for, kept in memory up to a bound, and never trusted. A run is
// used only while the record behind it still has the checksum that it was rendered from, so that no process serves what another one
// has changed.
import type { FeedId } from '@sealpost/protocol';
import { keysFrom, type ReportTables } from './lmdb-report-tables.ts';
import { renderedLength, secondOf, wholeSecondsEnd, writeReport } from './rendered-report.ts';
import { type Block, openBlock } from './report-block.ts';
import type { RenderedPage } from './store.ts';

/** Bytes of rendered runs that are kept at most: some 150 of 64 reports. */
const bytesKept = 16 * 1024 * 1024;

/** Pages that are kept until something is written; they hold on to their runs. */
const pagesKept = 32;

const comma = ','.charCodeAt(0);

/** A run whose reports lie side by side, each with a comma after it, rendered as they are asked for. */
type RenderedRun = {
  readonly checksum: number;
  readonly bytes: number;
  readonly block: Block;
  /** The reports from one index up to another, without the last comma. */
  readonly slice: (from: number, to: number) => Buffer;
};

const renderRun = (feedId: FeedId, stream: number, value: Buffer): RenderedRun => {
  const block = openBlock(stream, value);
  const starts = [0];
  for (let i = 0; i < block.count; i++)
    starts.push((starts[i] as number) + renderedLength(feedId, block.window(i), block.fullReportBytes(i)) + 1); // one start each
  const length = starts[block.count] as number;
  const text = Buffer.allocUnsafeSlow(length);
  const rendered = new Uint8Array(block.count);
  const render = (i: number): void => {
    const start = starts[i] as number; // one each
    const window = block.window(i);
    text[writeReport(text, start, feedId, window, block.lend(i, window))] = comma;
    rendered[i] = 1;
  };
  return {
    checksum: checksumOf(value),
    bytes: length + value.length,
    block,
    slice: (from, to) => {
      for (let i = from; i < to; i++) if (rendered[i] === 0) render(i);
      return text.subarray(starts[from], (starts[to] as number) - 1);
    },
  };
};

// A run's first word covers its index, which holds the checksum of each report.
const checksumOf = (value: Buffer): number => (value.length < 4 ? -1 : value.readUInt32BE(0));

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
  };
};

type Segment = { readonly run: RenderedRun; readonly from: number; readonly to: number };

/**
 * Makes a reader of rendered pages. `renew` begins a new snapshot; `writes` is how often the store was written, for the process that alone
 * writes it: what many ask for between two writes is looked up once.
 */
export const createPageRenderer = (
  tables: ReportTables,
  streamOf: (feedId: FeedId) => number | undefined,
  renew: () => void,
  writes: () => number | undefined,
) => {
  const render = createRunPages(tables, streamOf);
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

/** Pages cut from rendered runs, of the present snapshot. */
const createRunPages = (tables: ReportTables, streamOf: (feedId: FeedId) => number | undefined) => {
  const kept = createKept(bytesKept);

  const runAt = (table: 'blocks' | 'tail', feedId: FeedId, stream: number, key: Buffer): RenderedRun => {
    const value = tables[table].getBinaryFast(key) as Buffer; // lent until the next get; the key was just seen in this snapshot
    const name = `${table}${key.toString('latin1')}`;
    const known = kept.get(name);
    if (known?.checksum === checksumOf(value)) return known;
    const run = renderRun(feedId, stream, tables[table].get(key) as Buffer); // a copy of our own
    kept.keep(name, run);
    return run;
  };

  /** Every run of a stream that ends at or after a moment. */
  function* runsFrom(feedId: FeedId, stream: number, ms: number): Generator<RenderedRun> {
    for (const table of ['blocks', 'tail'] as const) {
      for (const key of tables[table].getKeys(keysFrom(stream, ms))) yield runAt(table, feedId, stream, key);
    }
  }

  return (feedId: FeedId, fromSeconds: number, limit: number): RenderedPage => {
    const stream = streamOf(feedId);
    const segments: Segment[] = [];
    let wanted = limit + 1; // one more tells whether there is more
    for (const run of stream === undefined ? [] : runsFrom(feedId, stream, fromSeconds * 1_000)) {
      const from = run.block.firstAtOrAfter(fromSeconds * 1_000);
      const to = Math.min(run.block.count, from + wanted);
      segments.push({ run, from, to });
      wanted -= to - from;
      if (wanted === 0) break;
    }
    if (wanted > 0) return toPage(segments, false);
    const end = wholeSecondsEnd((i) => secondAt(segments, i), limit);
    return toPage(takeReports(segments, end), true);
  };
};

const toPage = (segments: readonly Segment[], more: boolean): RenderedPage => {
  const last = segments.at(-1);
  return {
    json: segments.map(({ run, from, to }) => run.slice(from, to)),
    lastMs: last?.run.block.window(last.to - 1).observationsMs,
    more,
  };
};

/** The second of the report with so many before it. */
const secondAt = (segments: readonly Segment[], index: number): number | undefined => {
  let before = 0;
  for (const { run, from, to } of segments) {
    if (index < before + to - from) return secondOf(run.block.window(from + index - before).observationsMs);
    before += to - from;
  }
  return undefined;
};

const takeReports = (segments: readonly Segment[], count: number): readonly Segment[] => {
  const taken: Segment[] = [];
  let left = count;
  for (const { run, from, to } of segments) {
    if (left === 0) break;
    const end = Math.min(to, from + left);
    taken.push({ run, from, to: end });
    left -= end - from;
  }
  return taken;
};
