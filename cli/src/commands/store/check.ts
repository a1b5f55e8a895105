// Checks a store against itself: records against checksums and each other, windows, bodies against keys, and on demand every quorum. Only reads, so it
// is safe while a server is writing.
import { decodeFullReport, type FeedId, ReportFormatError, readReportBody, windowOf } from '@sealpost/protocol';
import { rejections } from '@sealpost/server/ingest/rejections';
import type { Verifier } from '@sealpost/server/ingest/verifier';
import { dependentsOf } from '@sealpost/server/store/damage';
import { toHex } from '@sealpost/server/store/format/report-contents';
import {
  CorruptRecordError,
  type ReportStore,
  type ScannedReport,
  type Store,
  type StoredReport,
  type Window,
} from '@sealpost/server/store/store';

/** Something that is not as it must be: the record, stream and observation where they are known, and what depends on it. */
export type Problem = {
  readonly table: string;
  readonly key: string;
  readonly feedId: FeedId | null;
  readonly observationsMs: number | null;
  readonly what: string;
  readonly affects: string;
};

/** What a check found. */
export type CheckResult = {
  readonly reports: number;
  readonly streams: number;
  readonly problemCount: number;
  /** The first thousand. */
  readonly problems: readonly Problem[];
  /** Whether the check came to its end. */
  readonly complete: boolean;
};

export type CheckOptions = {
  /** Checks quorums as well; it knows the registered signer sets. */
  readonly verifier?: Verifier;
  readonly signal?: AbortSignal;
  readonly onProgress?: (reports: number) => void;
  /** Finds what a scan does not: see `Store`. */
  readonly findDamage?: Store['findDamage'];
};

const sliceReports = 1_024;
const problemsKept = 1_000;

/** Checks every record. Reports that a running writer moves may be skipped; there are no false alarms. */
export async function checkStore(reports: ReportStore, options: CheckOptions): Promise<CheckResult> {
  const problems = createProblemList();
  const newest = new Map<FeedId, Window>();
  let cursor: string | undefined;
  let checked = 0;
  do {
    const { entries, next } = await reports.scan(cursor, sliceReports);
    for (const entry of entries) if (entry.error !== undefined) problems.addDamaged(entry);
    const sound = entries.flatMap(({ report }) => report ?? []);
    for (const report of sound) {
      const what = orderFault(report, newest.get(report.feedId)) ?? bodyFault(report);
      if (what !== undefined) problems.addReport(report, what);
      newest.set(report.feedId, report);
    }
    if (options.verifier !== undefined) await checkQuorums(sound, options.verifier, problems);
    checked += entries.filter(({ error, table }) => error === undefined || table === 'reports').length;
    options.onProgress?.(checked);
    cursor = next;
  } while (cursor !== undefined && !options.signal?.aborted);
  if (cursor === undefined)
    for (const { reason, feedId, table, key } of (await options.findDamage?.()) ?? [])
      problems.addDamaged({ error: new CorruptRecordError(reason), table, key, ...(feedId && { feedId }) });
  return { reports: checked, streams: newest.size, ...problems.found(), complete: cursor === undefined };
}

type ProblemList = ReturnType<typeof createProblemList>;

const createProblemList = () => {
  const problems: Problem[] = [];
  const damaged = new Set<string>();
  let problemCount = 0;
  const add = (problem: Problem): void => {
    problemCount += 1;
    if (problems.length < problemsKept) problems.push(problem);
  };
  return {
    add,
    /** Adds a fault of a report that can be read. */
    addReport: ({ feedId, observationsMs }: StoredReport, what: string): void =>
      add({
        table: 'reports',
        key: `${feedId}/${observationsMs}`,
        feedId,
        observationsMs,
        what,
        affects: 'one report',
      }),
    /** Adds a damaged record, once however it was found. */
    addDamaged: ({ error, table, key, feedId, observationsMs }: Extract<ScannedReport, { table: string }>): void => {
      const name = `${table} ${key}`;
      if (damaged.has(name)) return;
      if (damaged.size < problemsKept) damaged.add(name);
      const affects = dependentsOf(table, key);
      add({ table, key, feedId: feedId ?? null, observationsMs: observationsMs ?? null, what: error.message, affects });
    },
    found: () => ({ problemCount, problems }),
  };
};

const orderFault = ({ validFromMs, observationsMs }: Window, previous: Window | undefined): string | undefined => {
  if (validFromMs > observationsMs) return 'its window ends before it begins';
  if (previous === undefined || validFromMs > previous.observationsMs) return undefined;
  return observationsMs > previous.observationsMs
    ? `its window overlaps that of the report observed at ${previous.observationsMs} ms`
    : `it is stored after the report observed at ${previous.observationsMs} ms`;
};

const bodyFault = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): string | undefined => {
  try {
    const body = readReportBody(decodeFullReport(toHex(fullReport)).body);
    const window = windowOf(body);
    if (body.feedId !== feedId) return `its body is of stream ${body.feedId}`;
    const agrees = window.validFromMs === validFromMs && window.observationsMs === observationsMs;
    return agrees ? undefined : 'its body has another window';
  } catch (error) {
    if (error instanceof ReportFormatError) return error.message;
    throw error;
  }
};

const checkQuorums = async (
  reports: readonly StoredReport[],
  verifier: Verifier,
  problems: ProblemList,
): Promise<void> => {
  const verdicts = await verifier.verify(reports.map(({ fullReport }) => toHex(fullReport)));
  for (const [i, { code, detail }] of verdicts.entries()) {
    const report = reports[i];
    if (code === undefined || code === 'malformed_report' || report === undefined) continue; // malformed ones are counted by bodyFault
    const what = `${code}: ${rejections[code]}${detail === undefined ? '' : ` ${detail}`}`;
    problems.addReport(report, what);
  }
};
