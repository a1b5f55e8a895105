// Cuts a time range into slices of delivery time, the unit of work of a thread.
import type { DeliveredReport, Simulation, SimulationOptions, TimeRange } from './simulation.ts';

/** Delivery seconds, both ends included. */
export type Slice = { readonly deliveredFrom: number; readonly deliveredTo: number };

export type SliceOrder = Pick<SimulationOptions, 'everySeconds'> & {
  /** The newest slice comes first; its reports are in delivery order. */
  readonly newestFirst?: boolean | undefined;
};

/** The options of a thread. */
export type ThreadOptions = SimulationOptions & { readonly observed: TimeRange };

/** About 0.1 s of signing with two signatures: long compared to a message between threads, short for a reader that waits. */
const reportsPerSlice = 256;

/**
 * Cuts the delivery time of a range's reports, including late ones, into slices: in order, or the newest first. Each but the last has whole intervals of
 * `everySeconds`.
 */
export function* slicesOf(
  simulation: Simulation,
  { from, to }: TimeRange,
  { everySeconds = 1, newestFirst = false }: SliceOrder,
): Generator<Slice> {
  const { streams, delayMaxSeconds } = simulation;
  const reportsPerSecond = streams.reduce((sum, { intervalSeconds }) => sum + 1 / intervalSeconds, 0);
  const sliceSeconds = Math.ceil(reportsPerSlice / reportsPerSecond / everySeconds) * everySeconds;
  const first = Math.max(from, Math.min(...streams.map(({ livesFrom }) => livesFrom)));
  const end = to + delayMaxSeconds;
  const count = Math.max(0, Math.ceil((end - first + 1) / sliceSeconds));
  for (let i = 0; i < count; i += 1) {
    const start = first + (newestFirst ? count - 1 - i : i) * sliceSeconds;
    yield { deliveredFrom: start, deliveredTo: Math.min(end, start + sliceSeconds - 1) };
  }
}

/** Signs the reports of a slice, in delivery order. */
export function signSlice(simulation: Simulation, observed: TimeRange, slice: Slice): readonly DeliveredReport[] {
  const reports: DeliveredReport[] = [];
  for (let second = slice.deliveredFrom; second <= slice.deliveredTo; second += 1) {
    reports.push(...simulation.deliverAt(second, observed));
  }
  return reports;
}
