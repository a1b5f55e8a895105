// Follows the append order of the store, once per process, and delivers each report to every subscriber of its stream. Connections manage
// themselves.
import type { FeedId } from '@sealpost/protocol';
import { CorruptRecordError, type ReportStore, type StoredReport } from '../store/store.ts';
import type { EventIds } from './event-id.ts';
import { type LiveForm, liveForms, renderMessage } from './message.ts';

export type Subscriber = {
  readonly feedIds: readonly FeedId[];
  readonly form: LiveForm;
  /** Collects what is written until `flush`, so that several reports become one call of the system. */
  readonly collect: () => void;
  readonly write: (message: Buffer, position: number) => void;
  readonly flush: () => void;
};

export type Hub = {
  /** From the next report on. Returns the way to stop. */
  readonly subscribe: (subscriber: Subscriber) => () => void;
  /** The position of the last delivered report. */
  readonly position: () => number;
  readonly close: () => void;
};

export type HubOptions = {
  readonly reports: Pick<ReportStore, 'appendedAfter' | 'position' | 'onAppended' | 'latest'>;
  readonly eventIds: Pick<EventIds, 'encode'>;
  /** Streams that have reports before the hub begins. */
  readonly feedIds: Iterable<FeedId>;
  readonly onDelivered: (form: LiveForm, count: number) => void;
  /** Hears of a failure to read; it is tried again. */
  readonly onTrouble: (error: unknown) => void;
};

/** Reports per read; other work runs in between. */
const batchMax = 64;
const retryMs = 200;

type Listening = { readonly subscriber: Subscriber; batch: number };

/** Starts to follow. Reports that are stored when this resolves are not delivered. */
export const openHub = async ({ reports, eventIds, feedIds, onDelivered, onTrouble }: HubOptions): Promise<Hub> => {
  const isNew = createOrder((feedId) => reports.latest(feedId)?.observationsMs, feedIds);
  const listeners = createListeners(eventIds);
  let position = await reports.position();
  let state: 'idle' | 'reading' | 'again' | 'closed' = 'idle';
  const step = async (): Promise<boolean> => {
    try {
      const next = await reports.appendedAfter(position, batchMax);
      listeners.tell(next.reports, next.positions, isNew, onDelivered);
      position = next.position;
      return next.reports.length === batchMax;
    } catch (error) {
      if (state === 'closed') return false;
      onTrouble(error);
      if (error instanceof CorruptRecordError) {
        position += 1; // skips a corrupt report; otherwise none after it would be delivered
        return true;
      }
      setTimeout(wake, retryMs).unref();
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
  return {
    subscribe: listeners.add,
    position: () => position,
    close: () => {
      state = 'closed';
      stop();
    },
  };
};

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

type Deliver = HubOptions['onDelivered'];

const createListeners = (eventIds: HubOptions['eventIds']) => {
  const byForm: Record<LiveForm, Map<FeedId, Set<Listening>>> = {
    seconds: new Map(),
    milliseconds: new Map(),
    event: new Map(),
  };
  let batch = 0;
  const tellOne = (form: LiveForm, report: StoredReport, position: number, touched: Listening[]): number => {
    const listening = byForm[form].get(report.feedId);
    if (listening === undefined) return 0;
    const message = renderMessage(form, report, form === 'event' ? eventIds.encode(position) : '');
    for (const one of listening) {
      if (one.batch !== batch) {
        one.batch = batch;
        one.subscriber.collect();
        touched.push(one);
      }
      one.subscriber.write(message, position);
    }
    return listening.size;
  };
  return {
    add: (subscriber: Subscriber): (() => void) => {
      const one: Listening = { subscriber, batch: 0 };
      const table = byForm[subscriber.form];
      for (const feedId of subscriber.feedIds) {
        const known = table.get(feedId);
        if (known === undefined) table.set(feedId, new Set([one]));
        else known.add(one);
      }
      return () => {
        for (const feedId of subscriber.feedIds) {
          const known = table.get(feedId);
          known?.delete(one);
          if (known?.size === 0) table.delete(feedId);
        }
      };
    },
    tell: (
      reports: readonly StoredReport[],
      positions: readonly number[],
      isNew: ReturnType<typeof createOrder>,
      onDelivered: Deliver,
    ): void => {
      batch += 1;
      const touched: Listening[] = [];
      const counts = { seconds: 0, milliseconds: 0, event: 0 };
      for (const [i, report] of reports.entries()) {
        const goes = isNew(report);
        const position = positions[i] as number; // one for each report
        for (const form of liveForms) if (goes[form]) counts[form] += tellOne(form, report, position, touched);
      }
      for (const { subscriber } of touched) subscriber.flush();
      for (const form of liveForms) if (counts[form] > 0) onDelivered(form, counts[form]);
    },
  };
};
