// The worker thread of threads.ts: builds the simulation from its options, then signs one slice per message.
import { parentPort, workerData } from 'node:worker_threads';
import { createSimulation } from './simulation.ts';
import { type Slice, signSlice, type ThreadOptions } from './slices.ts';

const options = workerData as ThreadOptions; // threads.ts alone starts this file
const simulation = await createSimulation(options);

parentPort?.on('message', (slice: Slice) => {
  parentPort?.postMessage(signSlice(simulation, options.observed, slice));
});
