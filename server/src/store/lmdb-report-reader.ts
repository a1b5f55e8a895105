// Owns reading reports from LMDB: synchronous, on one snapshot per call, so that a run closing meanwhile is seen whole in one
// place. Used by every process, and by the writer inside its transactions.
import type { FeedId } from '@sealpost/protocol';
import { readCandles } from './lmdb-candles.ts';
import { changesOf } from './lmdb-counters.ts';
import { viewRecord } from './lmdb-environment.ts';
import { createPageRenderer } from './lmdb-rendered-runs.ts';
import {
  decodeAppended,
  decodeLatest,
  keysBefore,
  keysFrom,
  observationsOfKey,
  positionKey,
  positionOfKey,
  type ReportTables,
  streamKey,
  streamOfKey,
} from './lmdb-report-tables.ts';
import type { RecordBytes } from './record-bytes.ts';
import { renderReport, secondOf, wholeSecondsEnd } from './rendered-report.ts';
import { type Block, type BlockReport, openBlock } from './report-block.ts';
import {
  type Appended,
  CorruptRecordError,
  type LatestReport,
  type MinuteCandle,
  type Neighbours,
  type RenderedReport,
  type ReportPage,
  type StoredReport,
  type Window,
} from './store.ts';

/** A report that was found and not yet unpacked. */
export type FoundReport = { readonly window: Window; readonly read: () => BlockReport };

/**
 * Makes a reader. `renew` begins a new snapshot; inside a write transaction it does nothing. `writes` is how often the store was written,
 * for the process that alone writes it; others are never told.
 */
export const createReportReader = (
  tables: ReportTables,
  renew: () => void,
  writes: () => number | undefined = () => undefined,
) => {
  const numbers = new Map<FeedId, number>();
  const streamOf = (feedId: FeedId): number | undefined => {
    const known = numbers.get(feedId);
    if (known !== undefined) return known;
    const stored = tables.numbers.get(Buffer.from(feedId.slice(2), 'hex'))?.readUInt32BE();
    if (stored !== undefined) numbers.set(feedId, stored);
    return stored;
  };
  const onSnapshot = <T>(feedId: FeedId, missing: T, read: (stream: number) => T): T => {
    renew();
    const stream = streamOf(feedId);
    return stream === undefined ? missing : read(stream);
  };
  const latestOf = createLatestReader(tables);
  const lately = new Map<FeedId, { readonly writes: number; readonly report: LatestReport | undefined }>();
  return {
    streamOf,
    latest: (feedId: FeedId): LatestReport | undefined => {
      // The one that writes knows when nothing was written since it looked.
      const now = writes();
      const known = now === undefined ? undefined : lately.get(feedId);
      if (known !== undefined && known.writes === now) return known.report;
      const report = onSnapshot(feedId, undefined, latestOf);
      if (now !== undefined) lately.set(feedId, { writes: now, report });
      return report;
    },
    at: (feedId: FeedId, seconds: number): StoredReport | undefined =>
      onSnapshot(feedId, undefined, (stream) => findAt(tables, feedId, stream, seconds)),
    neighbours: (feedId: FeedId, seconds: number): Neighbours =>
      onSnapshot<Neighbours>(feedId, { previous: undefined, next: undefined }, (stream) => ({
        previous: findLastBefore(tables, stream, seconds * 1_000),
        next: findFirst(tables, stream, seconds * 1_000)?.window,
      })),
    page: (feedId: FeedId, fromSeconds: number, limit: number): ReportPage =>
      onSnapshot<ReportPage>(feedId, { reports: [], more: false }, (stream) =>
        readPage(tables, feedId, stream, fromSeconds, limit),
      ),
    windows: (feedId: FeedId, fromSeconds: number, toSeconds: number, limit: number): readonly Window[] =>
      onSnapshot<readonly Window[]>(feedId, [], (stream) => {
        const windows: Window[] = [];
        for (const { window } of foundFrom(tables, stream, fromSeconds * 1_000)) {
          if (windows.length === limit || secondOf(window.observationsMs) > toSeconds) break;
          windows.push(window);
        }
        return windows;
      }),
    candles: (feedId: FeedId, fromSeconds: number, toSeconds: number): readonly MinuteCandle[] =>
      onSnapshot<readonly MinuteCandle[]>(feedId, [], (stream) =>
        readCandles(tables.candles, stream, fromSeconds, toSeconds),
      ),
    renderedAt: createMomentRenderer(tables, streamOf, renew, writes),
    renderedPage: createPageRenderer(tables, streamOf, renew, writes),
    position: (): number => {
      renew();
      return lastPosition(tables);
    },
    appendedAfter: (position: number, limit: number): Appended => {
      renew();
      return readAppended(tables, position, limit);
    },
  };
};

const findAt = (tables: ReportTables, feedId: FeedId, stream: number, seconds: number): StoredReport | undefined => {
  const found = findFirst(tables, stream, seconds * 1_000);
  const holds = found !== undefined && secondOf(found.window.validFromMs) <= seconds;
  return holds ? { feedId, ...found.read() } : undefined;
};

/** Rendered answers to `at` that are kept until something is written: some 7 MB. */
const momentsKept = 4_096;

/**
 * Renders what holds at a second; many ask for the same one, so each is rendered once until something is written, and the same list of
 * feed ids gets the same list of reports.
 */
const createMomentRenderer = (
  tables: ReportTables,
  streamOf: (feedId: FeedId) => number | undefined,
  renew: () => void,
  writes: () => number | undefined,
) => {
  type Moment = { readonly seconds: number; readonly found: readonly (RenderedReport | undefined)[] };
  const moments = new Map<number, RenderedReport | undefined>();
  let lists = new WeakMap<readonly FeedId[], Moment>();
  let changes = -1;
  let writesSeen: number | undefined;
  const forgetChanged = (): void => {
    // The one that writes knows when nothing was written since it looked.
    const written = writes();
    if (written !== undefined && written === writesSeen && moments.size <= momentsKept) return;
    renew();
    const now = changesOf(tables);
    if (now !== changes || moments.size > momentsKept) {
      moments.clear();
      lists = new WeakMap();
    }
    changes = now;
    writesSeen = written;
  };
  const renderOne = (feedId: FeedId, seconds: number): RenderedReport | undefined => {
    const stream = streamOf(feedId);
    if (stream === undefined) return undefined;
    const moment = stream * 2 ** 32 + seconds;
    if (moments.has(moment)) return moments.get(moment);
    const report = findAt(tables, feedId, stream, seconds);
    const rendered = report && {
      observationsMs: report.observationsMs,
      json: Buffer.from(renderReport(report), 'latin1'),
    };
    moments.set(moment, rendered);
    return rendered;
  };
  return (feedIds: readonly FeedId[], seconds: number): readonly (RenderedReport | undefined)[] => {
    forgetChanged();
    const known = lists.get(feedIds);
    if (known?.seconds === seconds) return known.found;
    const found = feedIds.map((feedId) => renderOne(feedId, seconds));
    lists.set(feedIds, { seconds, found });
    return found;
  };
};

/** Reads a stream's newest report, which is decoded and checked once however often it is asked for: its stored checksum tells it. */
const createLatestReader = (tables: ReportTables): ((stream: number) => LatestReport | undefined) => {
  type Decoded = { readonly key: Buffer; checksum: number; report: LatestReport | undefined };
  const decoded = new Map<number, Decoded>();
  return (stream) => {
    const known = decoded.get(stream) ?? { key: streamKey(stream), checksum: -1, report: undefined };
    decoded.set(stream, known);
    // Decoded before the next read overwrites it.
    const value = viewRecord(tables.latest, known.key);
    if (value === undefined) return undefined;
    const checksum = value.length < 4 ? -1 : value.readUInt32BE(0);
    if (known.report !== undefined && known.checksum === checksum) return known.report;
    known.report = decodeLatest(stream, value);
    known.checksum = checksum;
    return known.report;
  };
};

/** The last appended position; 0 when nothing ever was. */
export const lastPosition = (tables: ReportTables): number =>
  Number(tables.meta.get(Buffer.from('position'))?.readBigUInt64BE() ?? 0n);

/** Later than any observation: keys hold 48 bits of milliseconds. */
export const momentMax = 2 ** 48 - 1;

const openRun = ({ key, value }: { readonly key: Buffer; readonly value: RecordBytes }): Block =>
  openBlock(streamOfKey(key), value);
const foundIn = (run: Block, i: number): FoundReport => ({ window: run.window(i), read: () => run.report(i) });

/** Every report of a stream observed at or after a moment, ascending, unpacked only when read. */
function* foundFrom(tables: ReportTables, stream: number, observationsMs: number): Generator<FoundReport> {
  for (const table of [tables.blocks, tables.tail]) {
    for (const entry of table.getRange(keysFrom(stream, observationsMs))) {
      const run = openRun(entry);
      for (let i = run.firstAtOrAfter(observationsMs); i < run.count; i++) yield foundIn(run, i);
    }
  }
}

/**
 * The first report observed at or after a moment. It is read from a view that the next read of the store overwrites, so the caller
 * unpacks it at once; no block of 14 KB is copied for one report.
 */
export const findFirst = (tables: ReportTables, stream: number, observationsMs: number): FoundReport | undefined => {
  for (const table of [tables.blocks, tables.tail]) {
    for (const key of table.getKeys({ ...keysFrom(stream, observationsMs), limit: 1 })) {
      const value = viewRecord(table, key) as RecordBytes; // the key was just seen in this snapshot
      const run = openRun({ key, value });
      return foundIn(run, run.firstAtOrAfter(observationsMs)); // its last report is at or after the moment, or its key would not be
    }
  }
  return undefined;
};

/** The window of the last report observed before a moment. */
export const findLastBefore = (tables: ReportTables, stream: number, observationsMs: number): Window | undefined => {
  if (observationsMs <= 0) return undefined;
  for (const table of [tables.tail, tables.blocks]) {
    // It is inside the run that ends at or after the moment, or the last of the run before.
    for (const entry of table.getRange({ ...keysFrom(stream, observationsMs), limit: 1 })) {
      const run = openRun(entry);
      const i = run.firstAtOrAfter(observationsMs);
      if (i > 0) return run.window(i - 1);
    }
    for (const entry of table.getRange({ ...keysBefore(stream, observationsMs), limit: 1 })) {
      const run = openRun(entry);
      return run.window(run.count - 1);
    }
  }
  return undefined;
};

const readPage = (
  tables: ReportTables,
  feedId: FeedId,
  stream: number,
  fromSeconds: number,
  limit: number,
): ReportPage => {
  const found: FoundReport[] = [];
  for (const report of foundFrom(tables, stream, fromSeconds * 1_000)) {
    found.push(report);
    if (found.length > limit) break;
  }
  const more = found.length > limit;
  const secondAt = (i: number): number | undefined => found[i] && secondOf(found[i].window.observationsMs);
  const end = more ? wholeSecondsEnd(secondAt, limit) : found.length;
  return { reports: found.slice(0, end).map(({ read }) => ({ feedId, ...read() })), more };
};

const readAppended = (tables: ReportTables, position: number, limit: number): Appended => {
  const reports: StoredReport[] = [];
  const positions: number[] = [];
  const feedIds = new Map<number, FeedId>();
  let reached = position;
  let oldest: number | undefined;
  const before = { start: positionKey(position + 1), end: positionKey(0), reverse: true, limit: 1 };
  const [containing] = [...tables.appended.getKeys(before)];
  for (const { key, value } of tables.appended.getRange({ start: containing ?? positionKey(0) })) {
    const first = positionOfKey(key);
    oldest ??= first;
    for (const [i, entry] of decodeAppended(value).entries()) {
      if (first + i <= position) continue;
      if (reports.length === limit) return { reports, positions, position: reached, missed: oldest > position + 1 };
      reached = first + i;
      const report = readExact(tables, entry, feedIds);
      if (report === undefined) continue;
      reports.push(report);
      positions.push(reached);
    }
  }
  return { reports, positions, position: reached, missed: oldest !== undefined && oldest > position + 1 };
};

// Undefined when retention has removed it since.
const readExact = (tables: ReportTables, key: Buffer, feedIds: Map<number, FeedId>): StoredReport | undefined => {
  const stream = streamOfKey(key);
  const observationsMs = observationsOfKey(key);
  const feedId = feedIds.get(stream) ?? feedIdOf(tables, stream);
  feedIds.set(stream, feedId);
  const found = findFirst(tables, stream, observationsMs);
  if (found?.window.observationsMs !== observationsMs) return undefined;
  return { feedId, ...found.read() };
};

/** The feed id behind a stream number. */
export const feedIdOf = (tables: ReportTables, stream: number): FeedId => {
  const bytes = tables.feedIds.get(streamKey(stream));
  if (bytes?.length !== 32) throw new CorruptRecordError(`the feed id of stream ${stream} is missing`);
  return `0x${bytes.toString('hex')}` as FeedId; // written from one
};
