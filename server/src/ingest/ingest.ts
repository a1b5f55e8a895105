// Ingest, the only way for reports into the store: verify → check → append → acknowledge. Rejected lines go to quarantine with the reason. A
// result is returned once it is durable.
import { type FeedId, type NetworkType, parseFeedId, timeResolutionOf, toReportJson } from '@sealpost/protocol';
import type { AdminView } from '../store/admin-snapshot.ts';
import { retentionEdgeMs } from '../store/retention.ts';
import type { AppendOutcome, NewReport, QuarantinedReport, Store, StoredReport } from '../store/store.ts';
import { createAppendOrder, type Turn } from './append-order.ts';
import { type IngestSender, mayPass } from './held-back.ts';
import { mirrorStreamsMax } from './mirror.ts';
import { Rejection, type RejectionCode } from './rejections.ts';
import { type LineResult, parseReportLine, type ReportLine } from './report-line.ts';
import { describeThrown, disagreeingField, type Verdict, type VerifiedReport } from './verification.ts';
import type { Sender, Verifier } from './verifier.ts';

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
    };

export type Ingest = {
  /**
   * Ingests lines, numbered from `firstLine`; resolves when each is durable or rejected, in order. Throws when the store fails. Batches of one
   * sender are appended in the order of submission, and senders take turns; batches without a sender share one order. Of a sender that resumes, nothing is
   * stored behind a rejected report that may be accepted later.
   */
  readonly submit: (
    lines: readonly string[],
    firstLine: number,
    sender?: IngestSender,
  ) => Promise<readonly LineResult[]>;
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

export const createIngest = (parts: IngestParts): Ingest => {
  const { store, view, verifier, rules } = parts;
  const useSigners = () => verifier.use(view.current().signerSets);
  useSigners();
  const stopView = view.onReload(useSigners);
  const room = createSemaphore(rules.linesInFlightMax);
  const questions = createSemaphore(questionsMax);
  const turns = createAppendOrder();
  const others: IngestSender = {};

  const recognizeDuplicates = async (texts: readonly string[]): Promise<(ParsedLine | SettledLine)[]> => {
    const newestOf = createNewestLookup(store);
    const lines: (ParsedLine | SettledLine)[] = texts.map(parse);
    const lookUps = lines.map((one, i) => {
      if (!mayBeStored(one, newestOf)) return undefined;
      return questions.enter(1, async () => {
        lines[i] = recognizeDuplicate(one, await candidatesFor(store, one.key));
      });
    });
    await Promise.all(lookUps);
    return lines;
  };
  const decide = async (texts: readonly string[], sender: Sender): Promise<(AdmittedLine | SettledLine)[]> => {
    const lines = await recognizeDuplicates(texts);
    const fullReports = lines.flatMap((one) => (one.kind === 'parsed' ? [one.line.fullReport] : []));
    const verdicts = (await verifier.verify(fullReports, sender)).values();
    return lines.map(
      (one) => (one.kind === 'parsed' ? admit(one, verdicts.next().value as Verdict, parts) : one), // one for each
    );
  };
  const append = async (lines: readonly (AdmittedLine | SettledLine)[]): Promise<readonly SettledLine[]> => {
    const reports = lines.flatMap((one) => (one.kind === 'admitted' ? [one.report] : []));
    // A duplicate was found by reading, which may be ahead of replication. An append confirms it too.
    if (reports.length === 0 && lines.some(({ kind }) => kind === 'duplicate')) await store.reports.confirm();
    const outcomes = (reports.length === 0 ? [] : await store.reports.append(reports)).values();
    return lines.map(
      (one) => (one.kind === 'admitted' ? settle(one, outcomes.next().value as AppendOutcome) : one), // one for each
    );
  };
  const settleAll = async (texts: readonly string[], sender: IngestSender, turn: Turn) => {
    const decided = await decide(texts, sender);
    await turn.come;
    return append(holdBack(decided, sender)).catch(turn.fail);
  };
  const pass = async (
    texts: readonly string[],
    firstLine: number,
    sender: IngestSender,
    turn: Turn,
  ): Promise<readonly LineResult[]> => {
    const settled = await settleAll(texts, sender, turn).finally(turn.done);
    await quarantine(parts, settled);
    observeAll(parts, settled);
    return settled.map((one, i) => toLineResult(one, firstLine + i));
  };

  return {
    submit: (lines, firstLine, sender) => {
      const from = sender ?? others;
      const turn = turns.take(from); // before it waits for capacity: batches behind a failure fail, wherever they wait
      return room.enter(lines.length, () => pass(lines, firstLine, from, turn), sender);
    },
    close: async () => {
      stopView();
      await turns.over();
      await verifier.close();
    },
  };
};

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

const mayBeStored = (
  one: ParsedLine | SettledLine,
  newestOf: (feedId: FeedId) => number,
): one is ParsedLine & { readonly key: StatedKey } =>
  one.kind === 'parsed' && one.key !== undefined && newestOf(one.key.feedId) >= one.key.seconds * 1_000;

// Bytes that are stored were verified before: loading a file again costs no signature checks.
const recognizeDuplicate = (one: ParsedLine, candidates: readonly StoredReport[]): ParsedLine | SettledLine => {
  try {
    const report = candidates.find((stored) => isTwin(stored, one.line));
    return report === undefined ? one : { kind: 'duplicate', report };
  } catch (error) {
    return reject(one.text, error);
  }
};

/** Concurrent look-ups of duplicates, of all senders: a database rejects more than its connections take. */
const questionsMax = 16;

/** More than any network signs for a stream in a second. */
const reportsPerSecondMax = 100;

// A line states a second; a millisecond stream may have many reports in it.
const candidatesFor = async (store: Store, { feedId, seconds }: StatedKey): Promise<readonly StoredReport[]> => {
  if (timeResolutionOf(feedId) === 'milliseconds')
    return (await store.reports.page(feedId, seconds, reportsPerSecondMax)).reports;
  const [stored] = await store.reports.at([feedId], seconds);
  return stored === undefined ? [] : [stored];
};

const isTwin = (stored: StoredReport, line: ReportLine): boolean => {
  const twin = toReportJson(stored.feedId, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`);
  return twin.fullReport === line.fullReport.toLowerCase() && disagreeingField(line, twin) === undefined;
};

type StatedKey = { readonly feedId: FeedId; readonly seconds: number };

/** When each stream was last observed, looked up once per batch. */
const createNewestLookup = (store: Store): ((feedId: FeedId) => number) => {
  const known = new Map<FeedId, number>();
  return (feedId) => {
    const newest = known.get(feedId) ?? store.reports.newestMs(feedId) ?? -1;
    known.set(feedId, newest);
    return newest;
  };
};

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
  { held }: IngestSender,
): readonly (AdmittedLine | SettledLine)[] => {
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

const observeAll = ({ observe }: IngestParts, settled: readonly SettledLine[]): void => {
  for (const result of ['stored', 'duplicate'] as const) {
    const count = settled.filter(({ kind }) => kind === result).length;
    if (count > 0) observe({ kind: 'ingested', result, count });
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

type Waiting = { readonly size: number; readonly sender: Sender | undefined; readonly enter: () => void };

/**
 * Admits lines up to a capacity; the rest wait, first come, first served. A sender with admitted lines may take no more than it leaves free, so that
 * another sender always gets in.
 */
const createSemaphore = (capacity: number) => {
  let free = capacity;
  const held = new Map<Sender, number>();
  const queue: Waiting[] = [];
  const hold = (sender: Sender | undefined, by: number): void => {
    free -= by;
    if (sender === undefined) return;
    const lines = (held.get(sender) ?? 0) + by;
    if (lines === 0) held.delete(sender);
    else held.set(sender, lines);
  };
  const hasShare = ({ size, sender }: Waiting): boolean => {
    const lines = sender === undefined ? 0 : (held.get(sender) ?? 0);
    return lines === 0 || lines + size <= free;
  };
  const admitNext = (): void => {
    const passedOver = new Set<Sender>(); // a sender's later batches wait behind its earlier ones
    for (let i = 0; i < queue.length; ) {
      const next = queue[i] as Waiting; // within bounds
      if (next.size > free) return;
      if (next.sender !== undefined && (passedOver.has(next.sender) || !hasShare(next))) {
        passedOver.add(next.sender);
        i += 1;
        continue;
      }
      queue.splice(i, 1);
      hold(next.sender, next.size);
      next.enter();
    }
  };
  return {
    enter: async <T>(wanted: number, act: () => Promise<T>, sender?: Sender): Promise<T> => {
      const size = Math.min(wanted, capacity);
      await new Promise<void>((enter) => {
        queue.push({ size, sender, enter });
        admitNext();
      });
      try {
        return await act();
      } finally {
        hold(sender, -size);
        admitNext();
      }
    },
  };
};
