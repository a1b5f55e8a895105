// The newest report of a stream in LMDB, derived from its last intact run and rendered for the wire. It is unpacked and checked once however
// often it is asked for: a run that changed has another key or another checksum (D120).
import type { FeedId } from '@sealpost/protocol';
import { changesOf } from './lmdb-counters.ts';
import { type FoundRun, foundIn, momentMax, noteRun, type ReportSource, readFound, runsBefore } from './lmdb-runs.ts';
import { renderReport } from './rendered-report.ts';
import { type LatestReport, reportTag, type StoredReport } from './store.ts';

/** What was found last time, and the run that it was found in. */
type Known = {
  readonly changes: number;
  readonly run: string | undefined;
  readonly report: LatestReport | undefined;
};

const render = (report: StoredReport): LatestReport => ({
  validFromMs: report.validFromMs,
  observationsMs: report.observationsMs,
  tag: reportTag(report.fullReport),
  json: `{"report":${renderReport(report)}}`,
});

// The checksum covers the run's index, which holds the checksum of each report.
const nameOf = ({ table, key, view }: FoundRun): string =>
  `${table} ${key.toString('latin1')} ${view().readUInt32BE(0)}`;

/** Makes a look-up of the newest report by stream, on the present snapshot. */
export const createLatestReader = (source: ReportSource) => {
  const known = new Map<number, Known>();
  const find = (feedId: FeedId, stream: number, before: Known | undefined): Omit<Known, 'changes'> => {
    for (const run of runsBefore(source.tables, stream, momentMax)) {
      noteRun(source, stream, run);
      if (run.block === undefined) continue;
      const name = nameOf(run);
      if (before?.run === name) return before;
      for (let i = run.block.count - 1; i >= 0; i--) {
        const report = readFound(source, stream, foundIn(run.block, i));
        if (report !== undefined) return { run: name, report: render({ feedId, ...report }) };
      }
    }
    return { run: undefined, report: undefined };
  };
  return (feedId: FeedId, stream: number): LatestReport | undefined => {
    const changes = changesOf(source.tables);
    const before = known.get(stream);
    if (before?.changes === changes) return before.report;
    const { run, report } = find(feedId, stream, before);
    known.set(stream, { changes, run, report });
    return report;
  };
};
