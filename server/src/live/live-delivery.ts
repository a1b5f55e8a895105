// Follows the append order of the store, once per process, and delivers each report to every subscriber of its stream, in one piece with those stored
// together with it (D209). Connections manage themselves.
import { createHash } from 'node:crypto';
import type { FeedId } from '@sealpost/protocol';
import { CorruptRecordError, type ReportStore, type StoredReport } from '../store/store.ts';
import type { EventIds } from './event-id.ts';
import { type LiveForm, liveForms, renderMessage } from './message.ts';

/** Reports that were stored together, for one subscription: a message for each, in append order. All bytes are shared: do not write to them. */
export type Burst = {
  readonly messages: readonly Buffer[];
  /** The position of each. */
  readonly positions: readonly number[];
  /** All messages in one piece; undefined for a single subscriber, to which they are written one by one without a copy. */
  readonly whole: Buffer | undefined;
  readonly bytes: number;
};

export type Deliver = (burst: Burst) => void;

export type LiveDelivery = {
  /** Delivers reports of these streams from the next one on. Returns the way to stop. */
  readonly subscribe: (form: LiveForm, feedIds: readonly FeedId[], deliver: Deliver) => () => void;
  /** Calls back whenever reports are not delivered that were stored, because the store lost its place in their order. Returns the way to stop. */
  readonly onMissed: (hear: () => void) => () => void;
  /** The position of the last delivered report. It goes back when the store lost something. */
  readonly position: () => number;
  readonly close: () => void;
};

export type LiveDeliveryOptions = {
  readonly reports: Pick<ReportStore, 'appendedAfter' | 'position' | 'onAppended' | 'latest'>;
  readonly eventIds: Pick<EventIds, 'encode'>;
  /** Streams that have reports before live delivery begins. */
  readonly feedIds: Iterable<FeedId>;
  readonly onDelivered: (form: LiveForm, count: number) => void;
  /** Hears of a failure to read, once until reading works; it is tried again. And of each corrupt report. */
  readonly onTrouble: (error: unknown) => void;
};

/** Reports per read; other work runs in between. */
const batchMax = 64;
const retryMs = 200;

/** Starts to follow. Reports that were stored before this was called are not delivered. */
export async function openLiveDelivery({
  reports,
  eventIds,
  feedIds,
  onDelivered,
  onTrouble,
}: LiveDeliveryOptions): Promise<LiveDelivery> {
  const isNew = createOrder((feedId) => reports.latest(feedId)?.observationsMs, feedIds);
  const groups = createGroups();
  const deliver = createDelivery(groups.wanting, eventIds, isNew, onDelivered);
  const missing = new Set<() => void>();
  let position = await reports.position();
  let state: 'idle' | 'reading' | 'again' | 'closed' = 'idle';
  let isAway = false;
  let retry: NodeJS.Timeout | undefined;
  const step = async (): Promise<boolean> => {
    try {
      const next = await reports.appendedAfter(position, batchMax);
      isAway = false;
      if (next.missed) {
        position = (next.positions[0] ?? next.position + 1) - 1;
        for (const hear of [...missing]) hear();
      }
      deliver(next.reports, next.positions);
      position = next.position;
      return next.reports.length === batchMax;
    } catch (error) {
      if (state === 'closed') return false;
      if (error instanceof CorruptRecordError) {
        onTrouble(error);
        position += 1; // skips a corrupt report; otherwise none after it would be delivered
        return true;
      }
      if (!isAway) onTrouble(error);
      isAway = true;
      clearTimeout(retry); // one at a time, however often reports are stored meanwhile
      retry = setTimeout(wake, retryMs).unref();
      return false;
    }
  };
  const isClosed = (): boolean => state === 'closed';
  const read = async (): Promise<void> => {
    state = 'reading';
    while (!isClosed()) {
      if (await step()) state = isClosed() ? state : 'again';
      if (state !== 'again') break;
      state = 'reading';
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (!isClosed()) state = 'idle';
  };
  const wake = (): void => {
    if (state === 'idle') void read();
    else if (state === 'reading') state = 'again';
  };
  const stop = reports.onAppended(wake);
  wake(); // for what was stored since the position was read
  return {
    subscribe: groups.add,
    onMissed: (hear) => {
      missing.add(hear);
      return () => missing.delete(hear);
    },
    position: () => position,
    close: () => {
      state = 'closed';
      clearTimeout(retry);
      stop();
    },
  };
}

/** Which reports go out in which form: observations strictly grow within a stream, in the unit that the form shows. Events have all. */
const createOrder = (newestOf: (feedId: FeedId) => number | undefined, feedIds: Iterable<FeedId>) => {
  const newest = new Map<FeedId, number>();
  for (const feedId of feedIds) newest.set(feedId, newestOf(feedId) ?? -1);
  return ({ feedId, observationsMs }: StoredReport): Readonly<Record<LiveForm, boolean>> => {
    const before = newest.get(feedId) ?? -1;
    if (observationsMs > before) newest.set(feedId, observationsMs);
    const milliseconds = observationsMs > before;
    const seconds = milliseconds && Math.floor(observationsMs / 1_000) > Math.floor(before / 1_000);
    return { seconds, milliseconds, event: true };
  };
};

/** The subscribers of the same streams in the same form: what they get is put together once, however many they are (D209). */
type Group = {
  readonly feedIds: readonly FeedId[];
  readonly members: Set<Deliver>;
};

type Collected = Map<Group, { readonly messages: Buffer[]; readonly positions: number[] }>;

/** The same for the same streams in any order; a hash, because a list of 100 takes 7 KB. */
const keyOf = (form: LiveForm, feedIds: readonly FeedId[]): string =>
  createHash('sha256')
    .update(`${form},${[...feedIds].sort().join()}`)
    .digest('base64');

const createGroups = () => {
  const groups = new Map<string, Group>();
  const byForm: Record<LiveForm, Map<FeedId, Set<Group>>> = {
    seconds: new Map(),
    milliseconds: new Map(),
    event: new Map(),
  };
  const openGroup = (form: LiveForm, feedIds: readonly FeedId[]): Group => {
    const group: Group = { feedIds, members: new Set() };
    const table = byForm[form];
    for (const feedId of feedIds) table.set(feedId, (table.get(feedId) ?? new Set()).add(group));
    return group;
  };
  const closeGroup = (form: LiveForm, group: Group): void => {
    const table = byForm[form];
    for (const feedId of group.feedIds) {
      const known = table.get(feedId);
      known?.delete(group);
      if (known?.size === 0) table.delete(feedId);
    }
  };
  return {
    add: (form: LiveForm, feedIds: readonly FeedId[], deliver: Deliver): (() => void) => {
      const key = keyOf(form, feedIds);
      const group = groups.get(key) ?? openGroup(form, feedIds);
      groups.set(key, group);
      group.members.add(deliver);
      return () => {
        if (!group.members.delete(deliver) || group.members.size > 0) return;
        groups.delete(key);
        closeGroup(form, group);
      };
    },
    /** The groups that get reports of a stream. */
    wanting: (form: LiveForm, feedId: FeedId): ReadonlySet<Group> | undefined => byForm[form].get(feedId),
  };
};

/** Returns what delivers reports that were stored together. */
const createDelivery = (
  wanting: ReturnType<typeof createGroups>['wanting'],
  eventIds: LiveDeliveryOptions['eventIds'],
  isNew: ReturnType<typeof createOrder>,
  onDelivered: LiveDeliveryOptions['onDelivered'],
) => {
  /** Adds a report to what each group gets; returns how many subscribers that are. */
  const collect = (form: LiveForm, report: StoredReport, position: number, collected: Collected): number => {
    const groups = wanting(form, report.feedId);
    if (groups === undefined) return 0;
    const message = renderMessage(form, report, form === 'event' ? eventIds.encode(position) : '');
    let subscribers = 0;
    for (const group of groups) {
      const known = collected.get(group);
      known?.messages.push(message);
      known?.positions.push(position);
      if (known === undefined) collected.set(group, { messages: [message], positions: [position] });
      subscribers += group.members.size;
    }
    return subscribers;
  };
  return (reports: readonly StoredReport[], positions: readonly number[]): void => {
    const collected: Collected = new Map();
    const counts = { seconds: 0, milliseconds: 0, event: 0 };
    for (const [i, report] of reports.entries()) {
      const goes = isNew(report);
      const position = positions[i] as number; // one for each report
      for (const form of liveForms) if (goes[form]) counts[form] += collect(form, report, position, collected);
    }
    for (const [{ members }, { messages, positions: each }] of collected) {
      const bytes = messages.reduce((sum, { length }) => sum + length, 0);
      const whole = members.size > 1 ? inOnePiece(messages, bytes) : undefined;
      const burst: Burst = { messages, positions: each, bytes, whole };
      for (const deliver of members) deliver(burst);
    }
    for (const form of liveForms) if (counts[form] > 0) onDelivered(form, counts[form]);
  };
};

/** Not from Node's pool, which a client that does not read would keep in memory. */
const inOnePiece = (messages: readonly Buffer[], bytes: number): Buffer => {
  const [only] = messages;
  if (only !== undefined && messages.length === 1) return only;
  const whole = Buffer.allocUnsafeSlow(bytes);
  let at = 0;
  for (const message of messages) at += message.copy(whole, at);
  return whole;
};
