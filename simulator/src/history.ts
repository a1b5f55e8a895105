// Generates history: every report of a time range, in delivery order, as fast as it can be signed. It reads a bounded number of slices
// ahead, so a slow reader slows the signing down and memory stays constant.
import { availableParallelism } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import {
  createSimulation,
  type DeliveredReport,
  observationMax,
  type Simulation,
  type SimulationOptions,
  type TimeRange,
} from './simulation.ts';
import { type SliceOrder, signSlice, slicesOf } from './slices.ts';
import { openThreads, type SliceSigner } from './threads.ts';

export type HistoryOptions = SimulationOptions &
  TimeRange &
  SliceOrder & {
    /** How many threads sign: one per core by default; 0 signs on the calling thread. */
    readonly workers?: number | undefined;
  };

/** Worker threads at most. */
export const workersMax = 64;

// Each thread signs one slice while the next waits for it.
const slicesPerThread = 2;

/** Yields the reports of a time range in batches, none of them empty. Returning early ends the threads. */
export async function* generateHistory(options: HistoryOptions): AsyncGenerator<readonly DeliveredReport[]> {
  const { seed, networkType, n, f, feedIds, everySeconds, gaps, late, from, to } = options;
  const { workers = availableParallelism() } = options;
  checkOptions({ from, to }, workers);
  const observed = { from, to };
  const simulationOptions = { seed, networkType, n, f, feedIds, everySeconds, gaps, late };
  const simulation = await createSimulation(simulationOptions);
  const signer =
    workers === 0 ? createLocalSigner(simulation, observed) : openThreads(workers, { ...simulationOptions, observed });
  const pending: Promise<readonly DeliveredReport[]>[] = [];
  try {
    for (const slice of slicesOf(simulation, observed, options)) {
      const batch = signer.sign(slice);
      batch.catch(() => {}); // thrown when the reader gets to it, if it does
      pending.push(batch);
      if (pending.length >= workers * slicesPerThread) yield* nextBatch(pending);
    }
    while (pending.length > 0) yield* nextBatch(pending);
  } finally {
    await signer.close();
  }
}

async function* nextBatch(pending: Promise<readonly DeliveredReport[]>[]): AsyncGenerator<readonly DeliveredReport[]> {
  const batch = await pending.shift();
  if (batch !== undefined && batch.length > 0) yield batch;
}

const createLocalSigner = (simulation: Simulation, observed: TimeRange): SliceSigner => ({
  sign: async (slice) => {
    await setImmediate(); // lets timers and signals run between slices
    return signSlice(simulation, observed, slice);
  },
  close: async () => {},
});

const checkOptions = ({ from, to }: TimeRange, workers: number): void => {
  if (!Number.isInteger(from) || !Number.isInteger(to) || from < 0 || to > observationMax) {
    throw new RangeError(`The span is ${from} to ${to}, expected whole Unix seconds up to ${observationMax}.`);
  }
  if (!Number.isInteger(workers) || workers < 0 || workers > workersMax) {
    throw new RangeError(`workers is ${workers}, expected a whole number from 0 to ${workersMax}.`);
  }
};
