// Ingest, the only way for reports into the store: queue → verify → check → append → acknowledge. Rejected lines go to quarantine with the reason. A
// result is returned once it is durable.
import { setTimeout as sleep } from 'node:timers/promises';
import { type FeedId, type NetworkType, parseFeedId, timeResolutionOf, toReportJson } from '@sealpost/protocol';
import type { AdminView } from '../store/admin-snapshot.ts';
import { retentionEdgeMs } from '../store/retention.ts';
import {
  type AppendOutcome,
  type NewReport,
  type QuarantinedReport,
  type Store,
  type StoredReport,
  StoreError,
  type StoreErrorCode,
} from '../store/store.ts';
import { mirrorStreamsMax } from './mirror.ts';
import { createKeyedQueue, type PreparedJob } from './queue.ts';
import { mayPass, Rejection, type RejectionCode } from './rejections.ts';
import { type LineResult, parseReportLine, type ReportLine } from './report-line.ts';
import { describeThrown, disagreeingField, type Verdict, type VerifiedReport } from './verification.ts';
import type { Verifier } from './verifier.ts';

/** Rules that the operator sets. */
export type IngestRules = {
  /** Reports observed longer ago are rejected. */
  readonly retentionDays: number;
  /** How far an observation may lie ahead of this machine's clock. */
  readonly aheadMaxMs: number;
  /** The network that this deployment serves. */
  readonly network: NetworkType;
  /** Lines under way at once; more wait. */
  readonly linesInFlightMax: number;
};

/** What ingest reports to its observer. */
export type IngestEvent =
  | { readonly kind: 'ingested'; readonly result: 'stored' | 'duplicate'; readonly count: number }
  | {
      readonly kind: 'refused';
      readonly code: RejectionCode;
      readonly feedId: string | null;
      readonly message: string;
    }
  /** Reports that readers can see now, and the seconds since they came in, those in the queue included. */
  | { readonly kind: 'visible'; readonly seconds: number; readonly count: number };

/**
 * A sender of reports, for example one stream of lines; compared by identity. One whose streams resume after their newest stored report has a set for
 * those that are held back. Others have none. Behind a report that was rejected and may be accepted later,
 * nothing of its stream is stored, or the sender would never send the rejected one again. It may end before it learns of the rejection, so ingest decides (D102).
 */
export type IngestSender = { readonly held?: Set<FeedId> };

export const createResumingSender = (): IngestSender => ({ held: new Set() });

export type Ingest = {
  /**
   * Ingests lines, numbered from `firstLine`; resolves when each is durable or rejected, in order. Throws when the store fails. Batches of one
   * sender are appended in the order of submission, and senders take turns; batches without a sender share one order. Of a sender that resumes, nothing is
   * stored behind a rejected report that may be accepted later. `entered` is called once the lines have room in the queue: a sender that waits for
   * it takes no more memory.
   */
  readonly submit: (
    lines: readonly string[],
    firstLine: number,
    sender?: IngestSender,
    entered?: () => void,
  ) => Promise<readonly LineResult[]>;
  /** Drops the lines of a sender that are not being appended, and those that it submits later. */
  readonly leave: (sender: IngestSender) => void;
  /** Finishes what was submitted. */
  readonly close: () => Promise<void>;
};

export type IngestParts = {
  readonly store: Store;
  readonly view: AdminView;
  readonly verifier: Verifier;
  readonly rules: IngestRules;
  readonly nowMs: () => number;
  readonly observe: (event: IngestEvent) => void;
};

/** A line that was parsed; its report is still to be verified. */
type ParsedLine = {
  readonly kind: 'parsed';
  readonly text: string;
  readonly line: ReportLine;
  /** The stream and second that the line states; undefined when it states none that are valid. */
  readonly key: StatedKey | undefined;
};

/** A line whose report passed every check; it is still to be appended. */
type AdmittedLine = { readonly kind: 'admitted'; readonly text: string; readonly report: NewReport };

type RejectedLine = {
  readonly kind: 'rejected';
  readonly text: string;
  readonly rejection: Rejection;
  /** Undefined where it could not be read or verified. */
  readonly report: NewReport | undefined;
  /** The stream that the line states; undefined when it states none. */
  readonly statedFeedId: FeedId | undefined;
};

/** A line with its result. */
type SettledLine = { readonly kind: 'stored' | 'duplicate'; readonly report: NewReport } | RejectedLine;

/** Lines of one sender that are verified together: some 20 ms of a thread, for which another sender waits. */
const pieceLines = 32;
/** An append takes no further batch once it has this many lines. */
const appendLines = 256;

export function createIngest(parts: IngestParts): Ingest {
  const { store, view, verifier, rules, observe } = parts;
  const useSigners = () => verifier.use(view.current().signerSets);
  useSigners();
  const stopView = view.onReload(useSigners);

  const decide = async (texts: readonly string[]): Promise<readonly (AdmittedLine | SettledLine)[]> => {
    const lines = await recognizeDuplicates(store, texts.map(parse));
    const fullReports = lines.flatMap((one) => (one.kind === 'parsed' ? [one.line.fullReport] : []));
    const verdicts = (await verifier.verify(fullReports)).values();
    return lines.map(
      (one) => (one.kind === 'parsed' ? admit(one, verdicts.next().value as Verdict, parts) : one), // one for each
    );
  };
  const append = async (lines: readonly (AdmittedLine | SettledLine)[]): Promise<readonly AppendOutcome[]> => {
    const reports = lines.flatMap((one) => (one.kind === 'admitted' ? [one.report] : []));
    if (reports.length > 0) return store.reports.append(reports);
    // A duplicate was found by reading, which may be ahead of replication. An append confirms it too.
    if (lines.some(({ kind }) => kind === 'duplicate')) await store.reports.confirm();
    return [];
  };
  type Decided = PreparedJob<IngestSender, AdmittedLine | SettledLine>;
  const appendAll = async (
    batch: readonly Decided[],
  ): Promise<readonly PromiseSettledResult<readonly SettledLine[]>[]> => {
    const outcomes = (await append(batch.flatMap(({ items }) => items))).values();
    const settled = batch.map(
      ({ items }) =>
        items.map((one) => (one.kind === 'admitted' ? settle(one, outcomes.next().value as AppendOutcome) : one)), // one for each
    );
    return Promise.allSettled(
      settled.map(async (lines) => {
        await quarantine(parts, lines);
        return lines;
      }),
    );
  };
  /** What one sender sent must not fail the lines of another. */
  const appendEach = async (batch: readonly Decided[]): ReturnType<typeof appendAll> => {
    const failures = new Map<IngestSender | undefined, PromiseSettledResult<never>>();
    const results: PromiseSettledResult<readonly SettledLine[]>[] = [];
    for (const one of batch) {
      const append = () => appendAll([one]).catch((reason: unknown) => [{ status: 'rejected' as const, reason }]);
      const [result] = failures.has(one.key) ? [failures.get(one.key)] : await append();
      if (result?.status === 'rejected') failures.set(one.key, result);
      if (result !== undefined) results.push(result);
    }
    return results;
  };
  const finish = async (decided: readonly Decided[]): ReturnType<typeof appendAll> => {
    const batch = decided.map(({ key, items }) => ({ key, items: holdBack(items, key) }));
    try {
      return await appendAll(batch);
    } catch (error) {
      if (batch.length === 1 || error instanceof StoreError) throw error;
      return appendEach(batch);
    }
  };
  const queue = createKeyedQueue<IngestSender, string, AdmittedLine | SettledLine, readonly SettledLine[]>({
    itemsMax: rules.linesInFlightMax,
    preparingMax: verifier.reportsAtOnce,
    pieceMax: pieceLines,
    batchMax: appendLines,
    prepare: decide,
    finish,
  });

  return {
    submit: async (lines, firstLine, sender, entered) => {
      const startedMs = performance.now();
      const settled = await queue.submit(lines, sender, entered);
      observeAll(settled, (performance.now() - startedMs) / 1_000, observe);
      return settled.map((one, i) => toLineResult(one, firstLine + i));
    },
    leave: queue.leave,
    close: async () => {
      stopView();
      await queue.close();
      await verifier.close();
    },
  };
}

// Any error rejects its line alone: one that failed the batch would fail it again at every retry.
const reject = (text: string, thrown: unknown, report?: NewReport, statedFeedId = report?.feedId): RejectedLine => ({
  kind: 'rejected',
  text,
  rejection: thrown instanceof Rejection ? thrown : new Rejection('check_failed', describeThrown(thrown)),
  report,
  statedFeedId,
});

const parse = (text: string): ParsedLine | RejectedLine => {
  try {
    const line = parseReportLine(text);
    return { kind: 'parsed', text, line, key: statedKey(line) };
  } catch (error) {
    return reject(text, error);
  }
};

/** Reports of a stream that are read to recognize those of a piece. */
const storedMax = 2 * pieceLines;
/** More than any network signs for a stream in a second. */
const reportsPerSecondMax = 100;

/**
 * Bytes that are stored were verified before: loading a file again costs no signature checks. Reads once for each stream, from the first second that the
 * lines state; a report that it does not reach is verified again, and found when it is appended.
 */
const recognizeDuplicates = async (
  store: Store,
  lines: readonly (ParsedLine | RejectedLine)[],
): Promise<readonly (ParsedLine | SettledLine)[]> => {
  const keys = new Map<FeedId, number[]>();
  for (const one of lines) {
    if (one.kind !== 'parsed' || one.key === undefined) continue;
    const { feedId, seconds } = one.key;
    if ((store.reports.newestMs(feedId) ?? -1) < seconds * 1_000) continue;
    keys.set(feedId, [...(keys.get(feedId) ?? []), seconds]);
  }
  const stored = new Map<FeedId, readonly StoredReport[]>();
  for (const [feedId, seconds] of keys) {
    const from = Math.min(...seconds);
    const each = timeResolutionOf(feedId) === 'milliseconds' ? reportsPerSecondMax : 1;
    const limit = Math.min((Math.max(...seconds) - from + 1) * each, storedMax + each);
    stored.set(feedId, (await store.reports.page(feedId, from, limit)).reports);
  }
  return lines.map((one) => {
    const candidates = one.kind === 'parsed' && one.key && stored.get(one.key.feedId);
    return candidates ? recognizeDuplicate(one, candidates) : one;
  });
};

const recognizeDuplicate = (one: ParsedLine, candidates: readonly StoredReport[]): ParsedLine | SettledLine => {
  try {
    const report = candidates.find(
      (stored) => Math.floor(stored.observationsMs / 1_000) === one.key?.seconds && isTwin(stored, one.line),
    );
    return report === undefined ? one : { kind: 'duplicate', report };
  } catch (error) {
    return reject(one.text, error);
  }
};

const isTwin = (stored: StoredReport, line: ReportLine): boolean => {
  const twin = toReportJson(stored.feedId, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`);
  return twin.fullReport === line.fullReport.toLowerCase() && disagreeingField(line, twin) === undefined;
};

/** A stream and a second of it. */
type StatedKey = { readonly feedId: FeedId; readonly seconds: number };

const statedKey = ({ feedID, observationsTimestamp }: ReportLine): StatedKey | undefined => {
  const isSecond = Number.isSafeInteger(observationsTimestamp) && (observationsTimestamp as number) >= 0; // an integer
  if (!isSecond || typeof feedID !== 'string' || !/^0x[0-9a-fA-F]{64}$/.test(feedID)) return undefined;
  return { feedId: parseFeedId(feedID), seconds: observationsTimestamp as number }; // checked above
};

const admit = (
  { text, line, key }: ParsedLine,
  { verified, code, detail }: Verdict,
  parts: IngestParts,
): AdmittedLine | RejectedLine => {
  if (code !== undefined) return reject(text, new Rejection(code, detail), undefined, key?.feedId);
  const { feedId, validFromMs, observationsMs, price } = verified;
  const fullReport = Buffer.from(line.fullReport.slice(2), 'hex');
  const report = { feedId, validFromMs, observationsMs, price, fullReport };
  try {
    const disagreeing = disagreeingField(line, toReportJson(feedId, verified, line.fullReport));
    if (disagreeing !== undefined) throw new Rejection('mismatched_fields', `It is ${disagreeing}.`);
    checkCatalog(verified, parts.view, parts.rules.network);
    checkTimes(verified, parts.rules, parts.nowMs());
    return { kind: 'admitted', text, report };
  } catch (error) {
    return reject(text, error, report);
  }
};

const checkCatalog = ({ feedId, configDigest }: VerifiedReport, view: AdminView, network: NetworkType): void => {
  const { streams, signerSets } = view.current();
  if (signerSets.get(configDigest)?.retiredAt != null) throw new Rejection('retired_signer_set');
  const stream = streams.get(feedId);
  if (stream === undefined) throw new Rejection('unknown_stream');
  if (stream.networkType !== network)
    throw new Rejection('wrong_network', `It is on ${stream.networkType}, this is ${network}.`);
  if (stream.status === 'decommissioned') throw new Rejection('decommissioned_stream');
};

const checkTimes = (
  { validFromMs, observationsMs, expiresAtMs }: VerifiedReport,
  rules: IngestRules,
  nowMs: number,
): void => {
  if (validFromMs > observationsMs) throw new Rejection('malformed_window');
  if (expiresAtMs !== undefined && expiresAtMs < observationsMs) throw new Rejection('expiry_before_observation');
  if (observationsMs < retentionEdgeMs(nowMs, rules.retentionDays)) throw new Rejection('older_than_retention');
  if (observationsMs > nowMs + rules.aheadMaxMs)
    throw new Rejection('ahead_of_clock', `It is ${observationsMs - nowMs} ms ahead.`);
};

/** The lines of a sender's next batch, without those whose stream is held back by a report before them. */
const holdBack = (
  lines: readonly (AdmittedLine | SettledLine)[],
  sender: IngestSender | undefined,
): readonly (AdmittedLine | SettledLine)[] => {
  const held = sender?.held;
  if (held === undefined) return lines;
  return lines.map((one) => {
    const { statedFeedId = undefined } = one.kind === 'rejected' && mayPass(one.rejection.code) ? one : {};
    if (statedFeedId !== undefined && held.size < mirrorStreamsMax) held.add(statedFeedId);
    if (one.kind !== 'admitted' || !held.has(one.report.feedId)) return one;
    return reject(one.text, new Rejection('held_back'), one.report);
  });
};

const settle = ({ text, report }: AdmittedLine, outcome: AppendOutcome): SettledLine => {
  if (outcome === 'conflict') return reject(text, new Rejection('conflicting_report'), report);
  if (outcome === 'overlap') return reject(text, new Rejection('overlapping_window'), report);
  return { kind: outcome, report };
};

const quarantineLineMax = 8_192;

/** Those that are held back come again: neither quarantine nor the log needs them. */
const isRejected = (one: SettledLine): one is RejectedLine =>
  one.kind === 'rejected' && one.rejection.code !== 'held_back';

const quarantine = async ({ store, nowMs }: IngestParts, settled: readonly SettledLine[]): Promise<void> => {
  const rejected = settled.filter(isRejected).map(
    ({ rejection, report, text }): QuarantinedReport => ({
      atMs: nowMs(),
      code: rejection.code,
      message: rejection.message,
      feedId: report?.feedId ?? null,
      observationsMs: report?.observationsMs ?? null,
      line: text.slice(0, quarantineLineMax),
    }),
  );
  if (rejected.length > 0) await store.quarantine.add(rejected);
};

const observeAll = (settled: readonly SettledLine[], seconds: number, observe: IngestParts['observe']): void => {
  for (const result of ['stored', 'duplicate'] as const) {
    const count = settled.filter(({ kind }) => kind === result).length;
    if (count > 0) observe({ kind: 'ingested', result, count });
    if (count > 0 && result === 'stored') observe({ kind: 'visible', seconds, count });
  }
  for (const { rejection, report } of settled.filter(isRejected))
    observe({ kind: 'refused', code: rejection.code, feedId: report?.feedId ?? null, message: rejection.message });
};

const toLineResult = (one: SettledLine, line: number): LineResult => ({
  line,
  result: one.kind === 'rejected' ? 'refused' : one.kind,
  feedID: one.report?.feedId ?? null,
  observationsTimestamp: one.report === undefined ? null : Math.floor(one.report.observationsMs / 1_000),
  code: one.kind === 'rejected' ? one.rejection.code : null,
  message: one.kind === 'rejected' ? one.rejection.message : null,
});

/** Failures of a store that pass: the disk has space again, the database answers again. */
const passingFailures: readonly StoreErrorCode[] = [
  'store_disk_full',
  'store_write_failed',
  'store_unavailable',
  'store_outcome_unknown',
];

/** Is it worth trying the same again later? */
export const isPassingFailure = (error: unknown): error is StoreError =>
  error instanceof StoreError && passingFailures.includes(error.code);

const retryMsDefault = 1_000;

/**
 * Submits reports until the store takes them, for a network within this process, whose reports nobody would send again: a failure that passes is waited
 * out until the signal is aborted; any other is thrown.
 */
export async function submitPatiently(
  ingest: Pick<Ingest, 'submit'>,
  lines: readonly string[],
  signal: AbortSignal,
  retryMs = retryMsDefault,
): Promise<readonly LineResult[]> {
  for (;;) {
    try {
      return await ingest.submit(lines, 1);
    } catch (error) {
      if (!isPassingFailure(error)) throw error;
      await sleep(retryMs, undefined, { signal }).catch(() => {}); // aborted
      if (signal.aborted) throw error;
    }
  }
}
