// Owns keeping the store within its bounds while it runs: slice after slice, with a pause between them, far from any request.
import type { ReportStore } from './store.ts';

export type RetentionRules = {
  readonly retentionMs: number;
  /** Bytes of pages in use. */
  readonly bytesMax: number;
  /** Between two rounds. */
  readonly everyMs: number;
};

/** Between two slices of a round, so that appends come first. */
const pauseMs = 5;

/** Trims now and then until stopped. A failure is told and tried again in the next round. */
export const startRetention = (
  reports: ReportStore,
  rules: RetentionRules,
  nowMs: () => number,
  onFailure: (error: unknown) => void,
): (() => Promise<void>) => {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const round = async (): Promise<void> => {
    for (let more = true; more && !stopped; ) {
      ({ more } = await reports.trim({ beforeMs: nowMs() - rules.retentionMs, bytesMax: rules.bytesMax }));
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
