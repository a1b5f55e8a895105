// THE ONE DOOR for reports: verify → check → append → acknowledge. Whatever way a report comes in, it passes here; what is
// refused goes to quarantine with its reason. A result is given only when it is durable.
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
} from '../store/store.ts';
import { Refusal, type RefusalCode } from './refusals.ts';
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

/** What the door tells its observer. */
export type IngestEvent =
  | { readonly kind: 'ingested'; readonly result: 'stored' | 'duplicate'; readonly count: number }
  | { readonly kind: 'refused'; readonly code: RefusalCode; readonly feedId: string | null; readonly message: string };

export type Ingest = {
  /**
   * Takes lines, numbered from `firstLine`; resolves when each is durable or refused, in order. Rejects when the store fails. Batches of one
   * sender are appended in the order of submission, senders take turns; batches without one share one order.
   */
  readonly submit: (lines: readonly string[], firstLine: number, sender?: Sender) => Promise<readonly LineResult[]>;
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

/** A line on its way: what is known so far, then its result. */
type PendingLine = {
  readonly text: string;
  line?: ReportLine;
  /** Where the line says that its report belongs; undefined when it does not say, or says nonsense. */
  key?: StatedKey | undefined;
  report?: NewReport;
  outcome?: AppendOutcome;
  refusal?: Refusal;
};

export const createIngest = (parts: IngestParts): Ingest => {
  const { store, view, verifier, rules } = parts;
  const useSigners = () => verifier.use(view.current().signerSets);
  useSigners();
  const stopView = view.onReload(useSigners);
  const room = createSemaphore(rules.linesInFlightMax);
  const questions = createSemaphore(questionsMax);
  const turns = createAppendOrder();
  const others: Sender = {};

  const decide = async (pending: readonly PendingLine[], sender: Sender): Promise<void> => {
    const newestOf = createNewestLookup(store);
    for (const one of pending) attempt(one, () => parse(one));
    const known = pending.filter((one) => isUndecided(one) && mayBeStored(one, newestOf));
    await Promise.all(known.map((one) => questions.enter(1, () => recogniseDuplicate(store, one))));
    const undecided = pending.filter(isUndecided);
    const verdicts = await verifier.verify(
      undecided.map(({ line }) => (line as ReportLine).fullReport), // parsed, or it would be decided
      sender,
    ); // parsed, or it would be refused
    for (const [i, one] of undecided.entries()) attempt(one, () => admit(one, verdicts[i] as Verdict, parts)); // one each
  };
  const append = async (pending: readonly PendingLine[]): Promise<void> => {
    const admitted = pending.filter(isUndecided);
    if (admitted.length === 0) {
      // Found by reading alone: a promise needs more where replication may be behind. An append brings it along.
      if (pending.some(({ outcome }) => outcome === 'duplicate')) await store.reports.confirm();
      return;
    }
    const outcomes = await store.reports.append(admitted.map(({ report }) => report as NewReport)); // admitted, so it has one
    for (const [i, one] of admitted.entries()) settle(one, outcomes[i] as AppendOutcome); // one each
  };
  const pass = async (
    texts: readonly string[],
    firstLine: number,
    sender: Sender,
    turn: Turn,
  ): Promise<readonly LineResult[]> => {
    const pending = texts.map((text): PendingLine => ({ text }));
    try {
      await decide(pending, sender);
      await turn.come;
      await append(pending).catch(turn.fail);
    } finally {
      turn.done();
    }
    await quarantine(parts, pending);
    observeAll(parts, pending);
    return pending.map((one, i) => toLineResult(one, firstLine + i));
  };

  return {
    submit: (lines, firstLine, sender) => {
      const from = sender ?? others;
      const turn = turns.take(from); // before it waits for room: what is behind a failure fails, wherever it waits
      return room.enter(lines.length, () => pass(lines, firstLine, from, turn), sender);
    },
    close: async () => {
      stopView();
      await turns.over();
      await verifier.close();
    },
  };
};

const isUndecided = ({ outcome, refusal }: PendingLine): boolean => outcome === undefined && refusal === undefined;

const attempt = (one: PendingLine, act: () => void): void => {
  try {
    act();
  } catch (error) {
    // Whatever was thrown: an error that failed the batch would fail it again at every retry.
    one.refusal = error instanceof Refusal ? error : new Refusal('check_failed', describeThrown(error));
  }
};

const parse = (one: PendingLine): void => {
  one.line = parseReportLine(one.text);
  one.key = statedKey(one.line);
};

const mayBeStored = ({ key }: PendingLine, newestOf: (feedId: FeedId) => number): boolean =>
  key !== undefined && newestOf(key.feedId) >= key.seconds * 1_000;

// Bytes that are stored were verified before: loading a file again costs no signature checks.
const recogniseDuplicate = async (store: Store, one: PendingLine): Promise<void> => {
  const { line, key } = one as { line: ReportLine; key: StatedKey }; // parsed, and with a key, or it could not be stored
  const candidates = await candidatesFor(store, key);
  attempt(one, () => {
    const twin = candidates.find((stored) => isTwin(stored, line));
    if (twin === undefined) return;
    one.report = twin;
    one.outcome = 'duplicate';
  });
};

/** Look-ups of duplicates at once, of all who send: a database refuses more than its connections take. */
const questionsMax = 16;

/** More than any network signs for a stream in a second. */
const reportsPerSecondMax = 100;

// The line tells a second; a millisecond stream may have many reports in it.
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

const admit = (one: PendingLine, { verified, code, detail }: Verdict, parts: IngestParts): void => {
  if (code !== undefined) throw new Refusal(code, detail);
  const { feedId, validFromMs, observationsMs, price } = verified;
  one.report = {
    feedId,
    validFromMs,
    observationsMs,
    price,
    fullReport: Buffer.from((one.line as ReportLine).fullReport.slice(2), 'hex'), // parsed before
  };
  const line = one.line as ReportLine; // as above
  const disagreeing = disagreeingField(line, toReportJson(feedId, verified, line.fullReport));
  if (disagreeing !== undefined) throw new Refusal('mismatched_fields', `It is ${disagreeing}.`);
  checkCatalog(verified, parts.view, parts.rules.network);
  checkTimes(verified, parts.rules, parts.nowMs());
};

const checkCatalog = ({ feedId, configDigest }: VerifiedReport, view: AdminView, network: NetworkType): void => {
  const { streams, signerSets } = view.current();
  if (signerSets.get(configDigest)?.retiredAt != null) throw new Refusal('retired_signer_set');
  const stream = streams.get(feedId);
  if (stream === undefined) throw new Refusal('unknown_stream');
  if (stream.networkType !== network)
    throw new Refusal('wrong_network', `It is on ${stream.networkType}, this is ${network}.`);
  if (stream.status === 'decommissioned') throw new Refusal('decommissioned_stream');
};

const checkTimes = (
  { validFromMs, observationsMs, expiresAtMs }: VerifiedReport,
  rules: IngestRules,
  nowMs: number,
): void => {
  if (validFromMs > observationsMs) throw new Refusal('malformed_window');
  if (expiresAtMs !== undefined && expiresAtMs < observationsMs) throw new Refusal('expiry_before_observation');
  if (observationsMs < retentionEdgeMs({ nowMs, retentionDays: rules.retentionDays })) throw new Refusal('older_than_retention');
  if (observationsMs > nowMs + rules.aheadMaxMs)
    throw new Refusal('ahead_of_clock', `It is ${observationsMs - nowMs} ms ahead.`);
};

const settle = (one: PendingLine, outcome: AppendOutcome): void => {
  if (outcome === 'conflict') one.refusal = new Refusal('conflicting_report');
  else if (outcome === 'overlap') one.refusal = new Refusal('overlapping_window');
  else one.outcome = outcome;
};

const quarantineLineMax = 8_192;

const quarantine = async ({ store, nowMs }: IngestParts, pending: readonly PendingLine[]): Promise<void> => {
  const refused = pending.flatMap(({ refusal, report, text }): QuarantinedReport[] =>
    refusal === undefined
      ? []
      : [
          {
            atMs: nowMs(),
            code: refusal.code,
            message: refusal.message,
            feedId: report?.feedId ?? null,
            observationsMs: report?.observationsMs ?? null,
            line: text.slice(0, quarantineLineMax),
          },
        ],
  );
  if (refused.length > 0) await store.quarantine.add(refused);
};

const observeAll = ({ observe }: IngestParts, pending: readonly PendingLine[]): void => {
  for (const result of ['stored', 'duplicate'] as const) {
    const count = pending.filter(({ outcome }) => outcome === result).length;
    if (count > 0) observe({ kind: 'ingested', result, count });
  }
  for (const { refusal, report } of pending) {
    if (refusal)
      observe({ kind: 'refused', code: refusal.code, feedId: report?.feedId ?? null, message: refusal.message });
  }
};

const toLineResult = ({ refusal, outcome, report }: PendingLine, line: number): LineResult => ({
  line,
  result: refusal ? 'refused' : (outcome as 'stored' | 'duplicate'), // every line is settled by now
  feedID: report?.feedId ?? null,
  observationsTimestamp: report === undefined ? null : Math.floor(report.observationsMs / 1_000),
  code: refusal?.code ?? null,
  message: refusal?.message ?? null,
});

type Turn = ReturnType<ReturnType<typeof createAppendOrder>['take']>;

/**
 * Appends of a sender keep the order of submission, or a batch that verified faster would make an earlier one late. When one fails, all that
 * were submitted by then, by whomever, fail with it: a sender that resumes after the newest stored report would skip the failed batch if a later one were stored
 * (D102), and where a store does not answer, each by itself would wait for all before it to fail.
 */
const createAppendOrder = () => {
  const lastOf = new WeakMap<Sender, Promise<void>>();
  let all: Promise<void> = Promise.resolve();
  let taken = 0;
  let failed = { upTo: 0, error: undefined as unknown }; // set by a failure
  const take = (sender: Sender) => {
    const number = ++taken;
    const last = lastOf.get(sender) ?? Promise.resolve();
    const come = last.then(() => {
      if (number > failed.upTo) return;
      throw new StoreError(
        'store_unavailable',
        'An earlier batch was not stored, so this one was not tried. Retry shortly.',
        {
          cause: failed.error,
        },
      );
    });
    come.catch(() => {}); // whoever fails before its turn does not wait for it
    let done = (): void => {};
    const mine = new Promise<void>((resolve) => {
      done = resolve;
    });
    const ended = last.then(() => mine);
    lastOf.set(sender, ended);
    const before = all;
    all = ended.then(() => before); // not all of both: its list would hold the lists of all batches before
    const fail = (error: unknown): never => {
      if (error instanceof StoreError) failed = { upTo: taken, error };
      throw error;
    };
    return { come, done, fail };
  };
  return { take, over: () => all };
};

type Waiting = { readonly size: number; readonly sender: Sender | undefined; readonly enter: () => void };

/**
 * Lets in as many lines at once as there is room for; the rest wait their turn, first come first served. A sender that has lines in it may take no
 * more than it leaves free, so that there is always room for another one.
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
