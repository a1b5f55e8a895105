// The faults that are set, and which of them act on what. A decision depends on the seed, the fault's ID and how often the fault matched before, so the
// same requests in the same order get the same faults.
import { createHash } from 'node:crypto';
import { explainMatch, type FeedId, matchStreams, type NamedStream, type RouteName } from '@sealpost/protocol';
import { clockMaxMs } from '../clock.ts';
import { momentMs, parsedMs } from './fields.ts';
import type { Fault, FaultKind, FaultOf } from './kinds.ts';
import { FaultError, formatFault, parseFault } from './parse.ts';

/** What a fault may act on: a request, a live connection or a report, by route, user ID and streams. */
export type FaultSubject = {
  readonly route: RouteName | undefined;
  readonly account: string | undefined;
  readonly feedIds: readonly FeedId[];
};

/** `waiting`: before its time. `exhausted`: it acted as often as `count` says. `over`: after its time. */
export type FaultState = 'waiting' | 'active' | 'exhausted' | 'over';

/** A fault that is set, with what it did so far. */
export type ListedFault = {
  readonly id: string;
  readonly fault: Fault;
  /** The same as a line of text. */
  readonly text: string;
  readonly state: FaultState;
  /** When it starts, in sandbox time. */
  readonly fromMs: number;
  /** When it ends; null when it does not. */
  readonly toMs: number | null;
  /** How often it could have acted. */
  readonly matched: number;
  /** How often it acted. */
  readonly applied: number;
};

/** A fault that was set. It stays the same one when another fault gets its ID. */
export type TrackedFault = {
  /** With its last counts, once it is removed. */
  readonly listed: () => ListedFault;
  /** False when it is removed already. */
  readonly remove: () => boolean;
};

/** A fault that acts now. `draw` is a number from 0 to 1 that depends on the decision and a word. */
export type AppliedFault<K extends FaultKind = FaultKind> = {
  readonly id: string;
  readonly fault: FaultOf<K>;
  readonly draw: (what: string) => number;
  /** Whether it is for a stream: all streams, where it names none. */
  readonly isFor: (feedId: FeedId) => boolean;
};

type Entry = {
  readonly id: string;
  readonly fault: Fault;
  readonly fromMs: number;
  readonly toMs: number;
  readonly routes: ReadonlySet<string> | undefined;
  readonly accounts: ReadonlySet<string> | undefined;
  readonly streams: readonly string[] | undefined;
  matched: number;
  applied: number;
};

export type DecisionOptions = {
  readonly seed: string;
  /** Sandbox time. */
  readonly nowMs: () => number;
  /** Says what keeps a fault from being set here; undefined when nothing does. */
  readonly objection: (fault: Fault) => FaultError | undefined;
};

export type Decisions = ReturnType<typeof createDecisions>;

/** More faults are rejected; those that are over make way first. */
export const faultsMax = 100;

export function createDecisions(options: DecisionOptions) {
  const { seed, nowMs } = options;
  const streams = createStreamNames();
  const { entries, ...set } = createEntries(options, streams.check);
  const isFor = (entry: Entry, feedId: FeedId): boolean =>
    entry.streams === undefined || entry.streams.some((name) => streams.isNamed(name, feedId));
  const covers = (entry: Entry, { route, account, feedIds }: FaultSubject): boolean =>
    (entry.routes === undefined || (route !== undefined && entry.routes.has(route))) &&
    (entry.accounts === undefined || (account !== undefined && entry.accounts.has(account))) &&
    (entry.streams === undefined || feedIds.some((feedId) => isFor(entry, feedId)));
  /** Counts that a fault matched, and decides whether it acts. */
  const take = (entry: Entry, everyOther = false): boolean => {
    const { id, fault } = entry;
    const n = entry.matched++;
    if (n < (fault.skip ?? 0) || (everyOther && (n - (fault.skip ?? 0)) % 2 === 0)) return false;
    if (fault.probability !== undefined && uniform(seed, id, n) >= fault.probability) return false;
    entry.applied += 1;
    return true;
  };
  const appliedOf = <K extends FaultKind>(entry: Entry, nth = entry.matched): AppliedFault<K> => ({
    id: entry.id,
    fault: entry.fault as FaultOf<K>, // the caller asked for this kind
    draw: (what) => uniform(seed, entry.id, nth, what),
    isFor: (feedId) => isFor(entry, feedId),
  });
  const covering = (kind: FaultKind, subject: FaultSubject, states: readonly FaultState[] = ['active']) =>
    [...entries.values()].filter(
      (entry) => entry.fault.kind === kind && states.includes(stateOf(entry, nowMs())) && covers(entry, subject),
    );
  return {
    ...set,
    /** Whether any fault of these kinds is set. */
    has: (kinds?: readonly FaultKind[]): boolean =>
      entries.size > 0 &&
      (kinds === undefined || [...entries.values()].some(({ fault }) => kinds.includes(fault.kind))),
    /** The first active fault of a kind that acts on the subject. `everyOther`: it acts every second time at most. */
    first: <K extends FaultKind>(kind: K, subject: FaultSubject, everyOther = false): AppliedFault<K> | undefined => {
      const acting = covering(kind, subject).find((entry) => take(entry, everyOther));
      return acting && appliedOf<K>(acting);
    },
    /** All active faults of a kind that act on the subject. */
    all: <K extends FaultKind>(kind: K, subject: FaultSubject): readonly AppliedFault<K>[] =>
      covering(kind, subject)
        .filter((entry) => take(entry))
        .map((entry) => appliedOf<K>(entry)),
    /** The faults of a kind that cover the subject at this time; `decide` counts one, and says whether it acts. `key` is the same each time. */
    pending: <K extends FaultKind>(kind: K, subject: FaultSubject) =>
      covering(kind, subject, ['active', 'exhausted']).map((entry) => ({
        ...appliedOf<K>(entry),
        key: entry as object, // nothing of it is for others
        decide: (): boolean => stateOf(entry, nowMs()) === 'active' && take(entry),
      })),
    /** The fault that leaves out a report: the same report is always left out, or never. */
    hiding: (subject: FaultSubject, feedId: FeedId, observationsMs: number): HidingFault | undefined => {
      for (const entry of entries.values()) {
        const { id, fault, fromMs, toMs } = entry;
        const isThen = observationsMs >= fromMs && observationsMs < toMs;
        if (!isHiding(fault.kind) || !isThen || !covers(entry, subject) || !isFor(entry, feedId)) continue;
        entry.matched += 1;
        if (fault.probability !== undefined && uniform(seed, id, feedId, observationsMs) >= fault.probability) continue;
        entry.applied += 1;
        return { ...appliedOf(entry), fromMs, toMs };
      }
      return undefined;
    },
    /** Names of streams are looked up in this catalog from now on. */
    useCatalog: streams.use,
  };
}

/** A fault that leaves out reports of a time; `toMs` may be infinite. */
export type HidingFault = AppliedFault & { readonly fromMs: number; readonly toMs: number };

/** Such a fault outlasts its own time: it is about reports of that time. */
const isHiding = (kind: FaultKind): boolean => kind === 'stop' || kind === 'gap';

const stateOf = ({ fault, fromMs, toMs, applied }: Entry, nowMs: number): FaultState => {
  if (nowMs < fromMs || nowMs >= toMs) return nowMs < fromMs ? 'waiting' : 'over';
  return fault.count !== undefined && applied >= fault.count ? 'exhausted' : 'active';
};

const listedAt = (entry: Entry, nowMs: number): ListedFault => {
  const { id, fault, fromMs, matched, applied } = entry;
  const toMs = Number.isFinite(entry.toMs) ? entry.toMs : null;
  return { id, fault, text: formatFault(fault), state: stateOf(entry, nowMs), fromMs, toMs, matched, applied };
};

/** Removes a fault that is done, where there is no room for another one. */
const makeRoom = (entries: Map<string, Entry>, nowMs: number): void => {
  if (entries.size < faultsMax) return;
  const isDone = (entry: Entry): boolean => ['exhausted', 'over'].includes(stateOf(entry, nowMs));
  const done = [...entries.values()].find((entry) => !isHiding(entry.fault.kind) && isDone(entry));
  if (done === undefined)
    throw new FaultError('id', `${faultsMax} faults are set, the maximum. Remove one first, or clear them.`);
  entries.delete(done.id);
};

/** The faults that are set, by ID, and how they are set. */
const createEntries = ({ nowMs, objection }: DecisionOptions, checkStreams: (names: readonly string[]) => void) => {
  const entries = new Map<string, Entry>();
  const changed = new Set<() => void>();
  let count = 0;
  const tell = (): void => {
    for (const listener of [...changed]) listener();
  };
  const newId = (): string => {
    do count += 1;
    while (entries.has(`f${count}`));
    return `f${count}`;
  };
  const listed = (entry: Entry): ListedFault => listedAt(entry, nowMs());
  const insert = (value: unknown, addedMs: number): Entry => {
    const fault = parseFault(value);
    const why = objection(fault);
    if (why !== undefined) throw why;
    if (fault.id !== undefined && entries.has(fault.id))
      throw new FaultError('id', `id is "${fault.id}", expected one that no other fault has. Remove that one first.`);
    checkStreams(listOf(fault.stream) ?? []);
    const span = spanOf(fault, addedMs);
    makeRoom(entries, nowMs());
    const scope = { routes: setOf(fault.route), accounts: setOf(fault.account), streams: listOf(fault.stream) };
    const entry: Entry = { id: fault.id ?? newId(), fault, ...span, ...scope, matched: 0, applied: 0 };
    entries.set(entry.id, entry);
    tell();
    return entry;
  };
  const remove = (id: string): boolean => {
    const isRemoved = entries.delete(id);
    if (isRemoved) tell();
    return isRemoved;
  };
  return {
    entries,
    /** `addedMs` is what its times are relative to: now, or the time that it was scheduled for. */
    add: (value: unknown, addedMs = nowMs()): ListedFault => listed(insert(value, addedMs)),
    addTracked: (value: unknown): TrackedFault => {
      const entry = insert(value, nowMs());
      return { listed: () => listed(entry), remove: () => entries.get(entry.id) === entry && remove(entry.id) };
    },
    /** False when there is no such fault. */
    remove,
    /** Removes all; IDs start from f1 again, so that what follows is decided as in a new sandbox. */
    clear: (): void => {
      entries.clear();
      count = 0;
      tell();
    },
    /** Returns the way back to the faults that are set now. */
    mark: (): (() => void) => {
      const [before, countBefore] = [[...entries], count];
      return () => {
        entries.clear();
        for (const [id, entry] of before) entries.set(id, entry);
        count = countBefore;
        tell();
      };
    },
    list: (): readonly ListedFault[] => [...entries.values()].map(listed),
    /** Calls back after faults were added or removed. Returns the way to stop. */
    onChange: (listener: () => void): (() => void) => {
      changed.add(listener);
      return () => void changed.delete(listener);
    },
  };
};

const listOf = (names: string | readonly string[] | undefined): readonly string[] | undefined =>
  typeof names === 'string' ? [names] : names;
const setOf = (names: string | readonly string[] | undefined): ReadonlySet<string> | undefined =>
  names === undefined ? undefined : new Set(listOf(names));

/** Evenly spread over 0 ≤ u < 1, and the same for the same words. */
const uniform = (...words: readonly (string | number)[]): number =>
  createHash('sha256').update(JSON.stringify(words)).digest().readUInt32BE(0) / 2 ** 32;

const spanOf = (fault: Fault, addedMs: number): { readonly fromMs: number; readonly toMs: number } => {
  checkMoments(fault, addedMs);
  const { from, to, for: lasts } = fault;
  const fromMs = from === undefined ? addedMs : (momentMs(from, addedMs) ?? addedMs);
  if (lasts !== undefined) return { fromMs, toMs: fromMs + parsedMs(lasts) };
  const toMs = to === undefined ? Number.POSITIVE_INFINITY : (momentMs(to, addedMs) ?? Number.POSITIVE_INFINITY);
  if (toMs > fromMs) return { fromMs, toMs };
  throw new FaultError(
    'to',
    `to is "${to}", expected a time after ${new Date(fromMs).toISOString()}, when the fault starts.`,
  );
};

/** Rejects times that no sandbox gets to. */
const checkMoments = ({ from, to }: Pick<Fault, 'from' | 'to'>, addedMs: number): void => {
  for (const [field, moment] of Object.entries({ from, to }))
    if (moment !== undefined && (momentMs(moment, addedMs) ?? 0) > clockMaxMs)
      throw new FaultError(
        field,
        `${field} is "${moment}", expected a time up to ${new Date(clockMaxMs).toISOString()}.`,
      );
};

/** Rejects names that no stream has, or several have. */
const checkStreamNames = (names: readonly string[], streams: readonly NamedStream[]): void => {
  for (const name of names) {
    const match = matchStreams(name, streams);
    if (match.found !== 'one') throw new FaultError('stream', `stream: ${explainMatch(name, match)}`);
  }
};

/** Rejects a fault that is to be set later, and then could not be with these streams. */
export function checkFault(fault: Fault, addedMs: number, streams: readonly NamedStream[]): void {
  checkStreamNames(listOf(fault.stream) ?? [], streams);
  checkMoments(fault, addedMs);
}

/** Names that are remembered: more than faults can have at once. */
const foundMax = 20_000;

/** Looks stream names up in a catalog, once for each state of it. */
const createStreamNames = () => {
  let catalog: (() => ReadonlyMap<FeedId, NamedStream>) | undefined;
  let known: ReadonlyMap<FeedId, NamedStream> | undefined;
  let found = new Map<string, ReadonlySet<string>>();
  const lookUp = (name: string): ReadonlySet<string> => {
    const current = catalog?.();
    if (current !== known || found.size > foundMax) {
      known = current;
      found = new Map();
    }
    const before = found.get(name);
    if (before !== undefined) return before;
    const match = matchStreams(name, [...(current?.values() ?? [])]);
    const feedIds = new Set(match.found === 'one' ? [name, match.stream.feedId] : [name]);
    found.set(name, feedIds);
    return feedIds;
  };
  return {
    use: (streams: () => ReadonlyMap<FeedId, NamedStream>): void => {
      catalog = streams;
    },
    isNamed: (name: string, feedId: FeedId): boolean => lookUp(name).has(feedId),
    /** Rejects names that no stream of the catalog has, or several have. Without a catalog, they take effect once there is one. */
    check: (names: readonly string[]): void => {
      if (catalog !== undefined) checkStreamNames(names, [...catalog().values()]);
    },
  };
};
