// The newest report of a stream in LMDB, derived from its last intact run and rendered for the wire. It is unpacked and checked once however
// often it is asked for: a run that changed has another key or another checksum (D120).
import type { FeedId } from '@sealpost/protocol';
import { renderLatest } from '../../format/rendered-report.ts';
import type { Block } from '../../format/report-block.ts';
import type { LatestReport } from '../../store.ts';
import { changesOf } from '../report-tables.ts';
import {
  type FoundRun,
  foundIn,
  lastRun,
  momentMax,
  noteRun,
  type ReportSource,
  readFound,
  runsBefore,
} from './runs.ts';

/** A stream's newest intact report. `isLast`: nothing damaged follows it. */
export type Newest = { readonly report: LatestReport | undefined; readonly isLast: boolean };

/** What was found last time, and the run that it was found in. */
type Known = Newest & { readonly changes: number; readonly run: string | undefined };

const nameOf = ({ table, key, checksum }: FoundRun): string => `${table} ${key.toString('latin1')} ${checksum}`;

/** Makes a look-up of when a stream was last observed, without reading the report; undefined when it has none. */
export const createNewestReader = (source: ReportSource) => {
  const known = new Map<number, { readonly changes: number; readonly observedMs: number | undefined }>();
  return (stream: number): number | undefined => {
    const changes = changesOf(source.tables);
    const before = known.get(stream);
    if (before?.changes === changes) return before.observedMs;
    const quick = lastRun(source.tables, stream);
    const found = quick?.reason === undefined ? endOf(quick?.block) : undefined;
    // A look-up that leads back was misled, or the run was removed.
    const isSound = found !== undefined && before?.observedMs !== undefined && found >= before.observedMs;
    const observedMs = isSound ? found : endOf(lastIntact(source, stream));
    known.set(stream, { changes, observedMs });
    return observedMs;
  };
};

const endOf = (block: Block | undefined): number | undefined => block?.window(block.count - 1).observationsMs;

const lastIntact = (source: ReportSource, stream: number): Block | undefined => {
  for (const run of runsBefore(source.tables, stream, momentMax)) {
    noteRun(source, stream, run);
    if (run.block !== undefined) return run.block;
  }
  return undefined;
};

/** Makes a look-up of the newest report by stream, on the present snapshot. */
export const createLatestReader = (source: ReportSource) => {
  const known = new Map<number, Known>();
  type Found = Omit<Known, 'changes'>;
  const findIn = (feedId: FeedId, stream: number, run: FoundRun, isFirst: boolean): Found | undefined => {
    const { block } = run;
    if (block === undefined) return undefined;
    const name = nameOf(run);
    for (let i = block.count - 1; i >= 0; i--) {
      const report = readFound(source, stream, foundIn(block, i));
      if (report !== undefined)
        return { run: name, report: renderLatest({ feedId, ...report }), isLast: isFirst && i === block.count - 1 };
    }
    return undefined;
  };
  /** By a bare look-up, which counts where it leads no further back than the one before. */
  const findQuickly = (feedId: FeedId, stream: number, before: Known | undefined): Found | undefined => {
    if (before?.report === undefined || !before.isLast) return undefined;
    const run = lastRun(source.tables, stream);
    if (run === undefined) return undefined;
    if (nameOf(run) === before.run) return before;
    if (run.reason !== undefined) return undefined;
    const found = findIn(feedId, stream, run, true);
    const isLater = (found?.report?.observationsMs ?? 0) > before.report.observationsMs;
    return found?.isLast && isLater ? found : undefined;
  };
  const find = (feedId: FeedId, stream: number): Found => {
    let isFirst = true;
    for (const run of runsBefore(source.tables, stream, momentMax)) {
      noteRun(source, stream, run);
      const found = findIn(feedId, stream, run, isFirst);
      if (found !== undefined) return found;
      isFirst = false;
    }
    return { run: undefined, report: undefined, isLast: isFirst };
  };
  return (feedId: FeedId, stream: number): Newest => {
    const changes = changesOf(source.tables);
    const before = known.get(stream);
    if (before?.changes === changes) return before;
    const now = { ...(findQuickly(feedId, stream, before) ?? find(feedId, stream)), changes };
    known.set(stream, now);
    return now;
  };
};
