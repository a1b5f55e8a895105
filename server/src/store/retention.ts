// Applies retention while a node runs, in slices with pauses. Age counts from the newest observation, or from the clock where that is earlier, so that a clock
// that is ahead removes nothing too early (D52).
import { dayMs, type Stream } from '@sealpost/protocol';
import { readFreshness } from './freshness.ts';
import type { ReportStore } from './store.ts';

/** Reports observed before this time, in ms, are rejected on ingest, hidden from readers, and removed. A whole second, as timestamps that are asked for. */
export const retentionEdgeMs = (nowMs: number, retentionDays: number): number =>
  Math.floor(nowMs / 1_000) * 1_000 - retentionDays * dayMs;

export type RetentionRules = {
  readonly retentionDays: number;
  /** Bytes of pages in use. */
  readonly retentionBytes: number;
  /** Between two rounds. */
  readonly everyMs: number;
};

/** Between two slices of a round, so that appends come first. */
const pauseMs = 5;

/** Trims periodically until stopped. A failure is reported and retried in the next round. */
export const startRetention = (
  reports: ReportStore,
  streams: () => Iterable<Stream>,
  rules: RetentionRules,
  nowMs: () => number,
  onFailure: (error: unknown) => void,
): (() => Promise<void>) => {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const oldestMs = async (): Promise<number> => {
    const now = nowMs();
    const { lagMs } = await readFreshness(reports, streams(), now);
    // Without any report there is nothing to be old.
    return lagMs === undefined ? 0 : Math.max(0, retentionEdgeMs(now - lagMs, rules.retentionDays));
  };
  const round = async (): Promise<void> => {
    const beforeMs = await oldestMs();
    for (let more = true; more && !stopped; ) {
      ({ more } = await reports.trim({ beforeMs, bytesMax: rules.retentionBytes }));
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
  return async () => {
    stopped = true;
    clearTimeout(timer);
    await running;
  };
};
