// Live reports: yields each one in its second, by a clock that the caller may replace.
import { setTimeout } from 'node:timers/promises';
import { createSimulation, type DeliveredReport, observationMax, type SimulationOptions } from './simulation.ts';

/** The clock of live reports. */
export type Clock = {
  readonly nowMs: () => number;
  /** Resolves at this time, or as soon as the signal is aborted. */
  readonly waitUntil: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
};

const timerMaxMs = 2 ** 31 - 1; // beyond that Node's timers fire at once

/** The system clock. */
export const systemClock: Clock = {
  nowMs: Date.now,
  waitUntil: async (ms, signal) => {
    // Timers may fire a millisecond early, and the clock may be set back meanwhile.
    while (signal?.aborted !== true && Date.now() < ms) {
      await setTimeout(Math.min(ms - Date.now(), timerMaxMs), undefined, { signal }).catch(() => {});
    }
  },
};

export type LiveOptions = SimulationOptions & {
  /** First second observed; the next whole one by default. Past seconds are delivered at once. */
  readonly from?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** Yields each report when it is due, until the signal is aborted or the reader returns. */
export async function* followClock(options: LiveOptions): AsyncGenerator<DeliveredReport> {
  const { clock = systemClock, signal, ...simulationOptions } = options;
  const simulation = await createSimulation(simulationOptions);
  const from = options.from ?? Math.ceil(clock.nowMs() / 1_000);
  for (let second = from; second <= observationMax; second += 1) {
    await clock.waitUntil(second * 1_000, signal);
    for (const delivered of simulation.deliverAt(second, { from, to: observationMax })) {
      if (signal?.aborted) return;
      yield delivered;
    }
    if (signal?.aborted) return;
  }
}
