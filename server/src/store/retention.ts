// Applies retention while a node runs, in slices with pauses. Age counts from the newest observation, or from the clock where that is earlier, so that a clock
// that is ahead removes nothing too early (D52). The nodes on a store agree on what is removed, and a lower setting waits for a day (D240).
import { isDeepStrictEqual } from 'node:util';
import { dayMs, type Stream } from '@sealpost/protocol';
import { readFreshness } from './freshness.ts';
import type { AppliedRetention, RetentionLimits } from './nodes.ts';
import type { ReportStore, Store } from './store.ts';

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

/**
 * What applies, from what did and what running nodes announce: higher limits at once, lower ones when a day of reports has passed. `timeMs` is
 * that of the newest report, or the clock where it is earlier; an empty store, which has none, has nothing to lose.
 */
export const nextRetention = (
  applied: AppliedRetention | undefined,
  announced: readonly RetentionLimits[],
  timeMs: number | undefined,
): AppliedRetention => {
  const wanted = largest(announced);
  if (applied === undefined || timeMs === undefined) return wanted;
  const kept = largest([applied, wanted]);
  if (isSame(kept, wanted)) return wanted;
  const { waiting } = applied;
  const latestMs = timeMs + dayMs;
  const fromMs = waiting && isSame(waiting, wanted) ? Math.min(waiting.fromMs, latestMs) : latestMs;
  return timeMs >= fromMs ? wanted : { ...kept, waiting: { ...wanted, fromMs } };
};

/** The same once the operator has confirmed what waits, unless something else does by now. */
export const confirmRetention = (
  applied: AppliedRetention | undefined,
  { days, bytes }: RetentionLimits,
): AppliedRetention =>
  applied === undefined || (applied.waiting && isSame(applied.waiting, { days, bytes })) ? { days, bytes } : applied;

const describeLimits = ({ days, bytes }: RetentionLimits): string =>
  `${days} days and ${bytes === null ? 'unlimited bytes' : `${bytes} bytes`}`;

/** What waits, for /readyz; undefined when nothing does. */
const describeWaiting = ({ waiting, ...applied }: AppliedRetention): string | undefined =>
  waiting &&
  `retention: ${describeLimits(applied)} apply, and ${describeLimits(waiting)} from ${new Date(waiting.fromMs).toISOString()} on, when older reports are deleted. To keep them, start a node with the longer retention; to delete them now, run: sealpost store retain --now`;

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
  readonly waiting: () => string | undefined;
  readonly stop: () => Promise<void>;
};

/** Between two slices of a round, so that appends come first. */
const pauseMs = 5;

/** Trims periodically until stopped. A failure is reported and retried in the next round. */
export const startRetention = (
  store: Pick<Store, 'reports' | 'keyHolders' | 'retention'>,
  streams: () => Iterable<Stream>,
  rules: RetentionRules,
  nowMs: () => number,
  onFailure: (error: unknown) => void,
): RunningRetention => {
  const { reports, keyHolders, retention } = store;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let waiting: string | undefined;
  const agree = async (timeMs: number | undefined): Promise<AppliedRetention> => {
    const others = (await keyHolders.list()).flatMap((node) => node.retention ?? []);
    const next = (current: AppliedRetention | undefined) =>
      nextRetention(current, [limitsOf(rules), ...others], timeMs);
    const current = await retention.get();
    return current && isDeepStrictEqual(next(current), current) ? current : retention.update(next);
  };
  const round = async (): Promise<void> => {
    const timeMs = await reportTime(reports, streams(), nowMs());
    const applied = await agree(timeMs);
    waiting = describeWaiting(applied);
    const beforeMs = timeMs === undefined ? 0 : Math.max(0, retentionEdgeMs(timeMs, applied.days));
    const bytesMax = applied.bytes ?? Number.POSITIVE_INFINITY;
    for (let more = true; more && !stopped; ) {
      ({ more } = await reports.trim({ beforeMs, bytesMax }));
      if (more) await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
  };
  let running = Promise.resolve();
  const start = (): void => {
    running = round().catch(onFailure);
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
};
