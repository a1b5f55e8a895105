// Verified and durable ingest against the bare recovery of the same signatures on the same cores.
import { availableParallelism } from 'node:os';
import { createSimulation } from '@sealpost/simulator';
import type { Store } from '../server/src/store/store.ts';
import { startThread } from '../server/src/threads.ts';
import { type Door, openDoor } from '../tests/door.ts';
import type { Measurement } from './measure.ts';

const seconds = 2_400;
/** Lines taken in before the clock starts: compiling WASM and JavaScript takes most of a second of CPU, once. */
const warmUpLines = 8_192;
const signaturesPerReport = 2;
const batchLines = 256;
/** Reports whose signatures the bare recovery goes through: too many for a processor to learn by heart. */
const recoveredReports = 1_024;

const fullReportsOf = (lines: readonly string[]): readonly string[] =>
  lines.map((line) => (JSON.parse(line) as { fullReport: string }).fullReport);

const secondsFor = async (act: () => Promise<unknown>): Promise<number> => {
  const start = performance.now();
  await act();
  return (performance.now() - start) / 1_000;
};

/** Seconds to recover so many signatures, those of the reports over and over: the cost depends on the numbers in them. */
const measureRecovery = async (signatures: number, reports: readonly string[]): Promise<number> => {
  const threads = Array.from({ length: availableParallelism() }, () =>
    startThread('./recovery-thread', import.meta.url, reports),
  );
  const ask = (count: number) =>
    Promise.all(
      threads.map(
        (thread) =>
          new Promise((resolve) => {
            thread.once('message', resolve);
            thread.postMessage(count);
          }),
      ),
    );
  await ask(warmUpLines / threads.length);
  const took = await secondsFor(() => ask(Math.ceil(signatures / threads.length)));
  await Promise.all(threads.map((thread) => thread.terminate()));
  return took;
};

const from = 1_763_200_000;

export type IngestLoad = {
  /** Opens the door for these lines, on a store in a folder unless another is opened. */
  readonly openFor: (open?: (folder: string) => Promise<Store>) => Promise<Door>;
  readonly batches: readonly (readonly string[])[];
};

/** Really signed lines of so many seconds of the simulated network, in batches. */
export const createIngestLoad = async (seconds: number): Promise<IngestLoad> => {
  const { network, streams, deliverAt } = await createSimulation({ seed: 'bench' });
  const lines = Array.from({ length: seconds }, (_, i) =>
    [...deliverAt(from + i)].map(({ report }) => JSON.stringify(report)),
  ).flat();
  const nowMs = () => (from + seconds) * 1_000;
  const catalog = streams.map(({ stream }) => stream);
  const signers = new Map([[network.signerSet.configDigest, network.signerSet]]);
  return {
    openFor: (open) => openDoor(catalog, signers, nowMs, {}, availableParallelism(), open),
    batches: Array.from({ length: Math.ceil(lines.length / batchLines) }, (_, i) =>
      lines.slice(i * batchLines, (i + 1) * batchLines),
    ),
  };
};

/** Takes the lines in that come before the clock starts; returns the others. */
export const warmUp = async (door: Door, batches: IngestLoad['batches']): Promise<IngestLoad['batches']> => {
  const count = warmUpLines / batchLines;
  await Promise.all(batches.slice(0, count).map((batch) => door.ingest.submit(batch, 1)));
  return batches.slice(count);
};

/** Seconds until all of the batches are durable. */
export const secondsToTakeIn = (door: Door, batches: IngestLoad['batches']): Promise<number> =>
  secondsFor(() => Promise.all(batches.map((batch) => door.ingest.submit(batch, 1))));

export const linesOf = (batches: IngestLoad['batches']): number =>
  batches.reduce((sum, batch) => sum + batch.length, 0);

export const benchIngest = async (): Promise<readonly Measurement[]> => {
  const { openFor, batches: all } = await createIngestLoad(seconds);
  const door = await openFor();
  const batches = await warmUp(door, all);
  const measured = linesOf(batches);
  const recovery = await measureRecovery(
    measured * signaturesPerReport,
    fullReportsOf(all.flat().slice(0, recoveredReports)),
  );
  const ingest = await secondsToTakeIn(door, batches);
  const again = await secondsToTakeIn(door, batches);
  await door.close();
  return [
    { name: 'bare recovery by ox WASM, all cores', value: measured / recovery, unit: 'reports/s' },
    { name: 'verified and durable ingest, all cores', value: measured / ingest, unit: 'reports/s' },
    {
      name: 'ingest to bare recovery',
      value: recovery / ingest,
      unit: 'ratio',
      note: 'the limit is ox’s libsecp256k1 in WASM',
    },
    { name: 'the same reports again, recognised', value: measured / again, unit: 'reports/s' },
  ];
};
