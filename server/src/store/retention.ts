// Applies retention while a node runs, in slices with pauses. Age counts from the newest observation, or from the clock where that is earlier, so that a clock
// that is ahead removes nothing too early (D52). The nodes on a store agree on what is removed; a lower setting waits for a day (D240), a large deletion for an hour (D241).
import { isDeepStrictEqual } from 'node:util';
import { dayMs, type Stream } from '@sealpost/protocol';
import { readFreshness } from './freshness.ts';
import type { AppliedRetention, RetentionLimits } from './nodes.ts';
import type { ReportStore, Retention, Store } from './store.ts';

/** Reports observed before this time, in ms, are rejected on ingest, hidden from readers, and removed. A whole second, as timestamps that are asked for. */
export const retentionEdgeMs = (nowMs: number, retentionDays: number): number =>
  Math.floor(nowMs / 1_000) * 1_000 - retentionDays * dayMs;

type RetentionSettings = { readonly retentionDays: number; readonly retentionBytes: number };

export type RetentionRules = RetentionSettings & {
  /** Between two rounds. */
  readonly everyMs: number;
};

/** What a node announces. */
export const limitsOf = ({ retentionDays: days, retentionBytes: bytes }: RetentionSettings): RetentionLimits => ({
  days,
  bytes: Number.isFinite(bytes) ? bytes : null,
});

/** The larger of each. */
const largest = (all: readonly RetentionLimits[]): RetentionLimits => {
  const bytes = all.map((one) => one.bytes).filter((one) => one !== null);
  return {
    days: Math.max(...all.map(({ days }) => days)),
    bytes: bytes.length < all.length ? null : Math.max(...bytes),
  };
};

const isSame = (a: RetentionLimits, b: RetentionLimits): boolean => a.days === b.days && a.bytes === b.bytes;

/** A large deletion waits for this long. */
const hourMs = 3_600_000;

/** What has been due by age for longer than this is more than a tenth of the time that the reports are from. */
const overdueMaxMs = (days: number): number => (days * dayMs) / 9;

export type Times = {
  readonly clockMs: number;
  /** Of the newest report, or the clock where that is earlier; undefined in an empty store, which has nothing to lose. */
  readonly reportsMs: number | undefined;
};

/**
 * What applies, from what did and what running nodes announce: higher limits at once, lower ones when both clock and reports are a day later. A store
 * that none have applied to may use many more bytes than they allow: these wait as a large deletion does.
 */
export function nextRetention(
  applied: AppliedRetention | undefined,
  announced: readonly RetentionLimits[],
  { clockMs, reportsMs }: Times,
  usedBytes = 0,
): AppliedRetention {
  const wanted = largest(announced);
  if (reportsMs === undefined) return wanted;
  if (applied === undefined) {
    const isLarge = wanted.bytes !== null && wanted.bytes < 0.9 * usedBytes;
    return isLarge ? { ...wanted, bytes: null, waiting: { ...wanted, fromMs: clockMs + hourMs } } : wanted;
  }
  const { waiting, deletionFromMs } = applied;
  const deletion = deletionFromMs !== undefined && { deletionFromMs };
  const kept = largest([applied, wanted]);
  if (isSame(kept, wanted)) return { ...wanted, ...deletion };
  const latestMs = clockMs + dayMs;
  const fromMs = waiting && isSame(waiting, wanted) ? Math.min(waiting.fromMs, latestMs) : latestMs;
  return { ...(reportsMs >= fromMs ? wanted : { ...kept, waiting: { ...wanted, fromMs } }), ...deletion };
}

/** The limits that are to be confirmed: those that wait, or those that apply if only a deletion does. */
export const unconfirmedOf = (applied: AppliedRetention | undefined): RetentionLimits | undefined =>
  applied?.waiting ?? (applied?.deletionFromMs === undefined ? undefined : applied);

/** The same once the operator has confirmed what waits, and the deletion with it, unless something else waits by now. */
export function confirmRetention(
  applied: AppliedRetention | undefined,
  { days, bytes }: RetentionLimits,
): AppliedRetention {
  const found = unconfirmedOf(applied);
  return applied && !(found && isSame(found, { days, bytes })) ? applied : { days, bytes, deletionFromMs: 0 };
}

const describeLimits = ({ days, bytes }: RetentionLimits): string =>
  `${days} days and ${bytes === null ? 'unlimited bytes' : `${bytes} bytes`}`;

/** What waits, for /readyz and the log. */
const describeWaiting = (
  { waiting, deletionFromMs = 0, ...applied }: AppliedRetention,
  { reportsMs = 0 }: Times,
): readonly string[] => {
  const now = 'to delete them now, run: sealpost store retain --now';
  const timeOf = (ms: number) => new Date(ms).toISOString();
  return [
    waiting &&
      `retention: ${describeLimits(applied)} apply, and ${describeLimits(waiting)} from ${timeOf(waiting.fromMs)} on, when older reports are deleted. To keep them, start a node with the longer retention; ${now}`,
    deletionFromMs > reportsMs &&
      `retention: ${applied.days} days apply, and more than a tenth of the stored time is older. These reports are deleted from ${timeOf(deletionFromMs)} on. To keep them, start a node with a longer retention, or correct the clock; ${now}`,
  ].filter((text) => typeof text === 'string');
};

/** The time that age counts from; undefined without any report. */
const reportTime = async (
  reports: ReportStore,
  streams: Iterable<Stream>,
  nowMs: number,
): Promise<number | undefined> => {
  const { lagMs } = await readFreshness(reports, streams, nowMs);
  return lagMs === undefined ? undefined : nowMs - lagMs;
};

export type RunningRetention = {
  /** What waits, as of the last round. */
  readonly waiting: () => readonly string[];
  readonly stop: () => Promise<void>;
};

export type RetentionEvents = {
  readonly failed: (error: unknown) => void;
  /** Something waits, once for each. */
  readonly waits: (text: string) => void;
  /** Once for each round that deleted something, even if it failed later. */
  readonly deleted: (count: number, endMs: number) => void;
};

/** Between two slices of a round, so that appends come first. */
const pauseMs = 5;

/** Trims periodically until stopped. A failure is reported and retried in the next round. */
export function startRetention(
  store: Pick<Store, 'reports' | 'keyHolders' | 'retention'>,
  streams: () => Iterable<Stream>,
  rules: RetentionRules,
  nowMs: () => number,
  events: RetentionEvents,
): RunningRetention {
  const { reports, keyHolders, retention } = store;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let waiting: readonly string[] = [];
  let deleted = { count: 0, endMs: 0 };
  const agree = async (times: Times): Promise<AppliedRetention> => {
    const others = (await keyHolders.list()).flatMap((node) => node.retention ?? []);
    const current = await retention.get();
    const usedBytes = current === undefined ? (await reports.stats()).usedBytes : 0;
    const next = (before: AppliedRetention | undefined) =>
      nextRetention(before, [limitsOf(rules), ...others], times, usedBytes);
    return current && isDeepStrictEqual(next(current), current) ? current : retention.update(next);
  };
  /** Deletes slice by slice what may be deleted. */
  const remove = async (due: Retention): Promise<'all' | 'part' | 'withheld'> => {
    while (!stopped) {
      const { removed, endMs = 0, more, isWithheld } = await reports.trim(due);
      deleted = { count: deleted.count + removed, endMs: Math.max(deleted.endMs, endMs) };
      if (!more) return isWithheld ? 'withheld' : 'all';
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return 'part';
  };
  /** Deletes what is due, but for a large deletion that waits; returns until when one does. */
  const removeDue = async (applied: AppliedRetention, { clockMs, reportsMs }: Times): Promise<number | undefined> => {
    const { days, deletionFromMs } = applied;
    const bytesMax = applied.bytes ?? Number.POSITIVE_INFINITY;
    const beforeMs = reportsMs === undefined ? 0 : Math.max(0, retentionEdgeMs(reportsMs, days));
    const mayBeLarge = reportsMs !== undefined && deletionFromMs !== undefined && reportsMs >= deletionFromMs;
    const removed = await remove({ beforeMs, bytesMax, ...(!mayBeLarge && { overdueMaxMs: overdueMaxMs(days) }) });
    if (removed === 'all') return undefined;
    if (removed === 'part') return deletionFromMs;
    await remove({ beforeMs: 0, bytesMax });
    return Math.min(deletionFromMs ?? Number.POSITIVE_INFINITY, clockMs + hourMs);
  };
  const note = (applied: AppliedRetention, times: Times): void => {
    const texts = describeWaiting(applied, times);
    for (const text of texts) if (!waiting.includes(text)) events.waits(text);
    waiting = texts;
  };
  const round = async (): Promise<void> => {
    const clockMs = nowMs();
    const times = { clockMs, reportsMs: await reportTime(reports, streams(), clockMs) };
    const applied = await agree(times);
    note(applied, times);
    const { deletionFromMs: beforeMs } = applied;
    const fromMs = await removeDue(applied, times);
    // Unless the operator confirmed it meanwhile, or another node was here first.
    const set = (current: AppliedRetention | undefined): AppliedRetention => {
      const { deletionFromMs, ...others } = current ?? applied;
      if (deletionFromMs !== beforeMs) return current ?? applied;
      return fromMs === undefined ? others : { ...others, deletionFromMs: fromMs };
    };
    if (fromMs !== beforeMs) note(await retention.update(set), times);
  };
  let running = Promise.resolve();
  const start = (): void => {
    running = round()
      .catch(events.failed)
      .then(() => {
        if (deleted.count > 0) events.deleted(deleted.count, deleted.endMs);
        deleted = { count: 0, endMs: 0 };
      });
    void running.then(() => {
      if (!stopped) timer = setTimeout(start, rules.everyMs).unref();
    });
  };
  start();
  return {
    waiting: () => waiting,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await running;
    },
  };
}
