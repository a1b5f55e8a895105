// Verified and durable ingest against the bare recovery of the same signatures on the same cores.
import { availableParallelism } from 'node:os';
import { createSimulation } from '@sealpost/simulator';
import { startThread } from '../server/src/threads.ts';
import { openDoor } from '../tests/door.ts';
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

export const benchIngest = async (): Promise<readonly Measurement[]> => {
  const { network, streams, deliverAt } = await createSimulation({ seed: 'bench' });
  const from = 1_763_200_000;
  const lines = Array.from({ length: seconds }, (_, i) =>
    [...deliverAt(from + i)].map(({ report }) => JSON.stringify(report)),
  ).flat();
  const nowMs = () => (from + seconds) * 1_000;
  const catalog = streams.map(({ stream }) => stream);
  const door = await openDoor(
    catalog,
    new Map([[network.signerSet.configDigest, network.signerSet]]),
    nowMs,
    {},
    availableParallelism(),
  );
  const batches = Array.from({ length: Math.ceil(lines.length / batchLines) }, (_, i) =>
    lines.slice(i * batchLines, (i + 1) * batchLines),
  );
  const warmUp = batches.splice(0, warmUpLines / batchLines);
  await Promise.all(warmUp.map((batch) => door.ingest.submit(batch, 1)));
  const measured = batches.reduce((sum, batch) => sum + batch.length, 0);
  const recovery = await measureRecovery(
    measured * signaturesPerReport,
    fullReportsOf(lines.slice(0, recoveredReports)),
  );
  const ingest = await secondsFor(() => Promise.all(batches.map((batch) => door.ingest.submit(batch, 1))));
  const again = await secondsFor(() => Promise.all(batches.map((batch) => door.ingest.submit(batch, 1))));
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
