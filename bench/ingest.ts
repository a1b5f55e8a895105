// Verified and durable ingest against the bare recovery of the same signatures on the same cores.
import { availableParallelism } from 'node:os';
import { createSimulation } from '@sealpost/simulator';
import { ingestNdjson } from '../server/src/ingest/sources/ndjson.ts';
import { startThread } from '../server/src/runtime/threads.ts';
import type { Store } from '../server/src/store/store.ts';
import { openRunningIngest, type RunningIngest } from '../tests/support/running-ingest.ts';
import type { Measurement } from './measure.ts';

const seconds = 2_400;
/** Lines taken in before the clock starts: compiling WASM and JavaScript takes most of a second of CPU, once. */
const warmUpLines = 8_192;
const signaturesPerReport = 2;
const batchLines = 256;
/** Seconds of the network that a backfill beside live reports brings. */
const backfillSeconds = 900;
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
  const threads = Array.from(
    { length: availableParallelism() },
    () => startThread('./recovery-thread', import.meta.url, reports), // beside this, bundled
  );
  const ask = (count: number) =>
    Promise.all(
      threads.map(
        (thread) =>
          new Promise<void>((resolve) => {
            thread.once('message', () => resolve());
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
  /** Opens ingest for these lines, on a store in a folder unless another is opened. */
  readonly openFor: (open?: (folder: string) => Promise<Store>) => Promise<RunningIngest>;
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
    openFor: (open) => openRunningIngest(catalog, signers, nowMs, {}, availableParallelism(), open),
    batches: Array.from({ length: Math.ceil(lines.length / batchLines) }, (_, i) =>
      lines.slice(i * batchLines, (i + 1) * batchLines),
    ),
  };
};

/** Takes the lines in that come before the clock starts; returns the others. */
export const warmUp = async (
  running: RunningIngest,
  batches: IngestLoad['batches'],
): Promise<IngestLoad['batches']> => {
  const count = warmUpLines / batchLines;
  await Promise.all(batches.slice(0, count).map((batch) => running.ingest.submit(batch, 1)));
  return batches.slice(count);
};

/** Seconds until all of the batches are durable. */
export const secondsToTakeIn = (running: RunningIngest, batches: IngestLoad['batches']): Promise<number> =>
  secondsFor(() => Promise.all(batches.map((batch) => running.ingest.submit(batch, 1))));

export const linesOf = (batches: IngestLoad['batches']): number =>
  batches.reduce((sum, batch) => sum + batch.length, 0);

const liveLines = 24;
const liveBatchesMax = 20;

/** Lines as a sender's connection brings them. */
async function* bytesOf(lines: readonly string[]): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < lines.length; i += batchLines)
    yield Buffer.from(`${lines.slice(i, i + batchLines).join('\n')}\n`);
}

const sendAll = async (running: RunningIngest, lines: readonly string[]): Promise<void> => {
  for await (const results of ingestNdjson(running.ingest, bytesOf(lines))) void results;
};

/** Live batches, one after the other, while so many senders fill in what came before: the median until one is durable, and what all of it takes. */
const measureBackfill = async (senders: number, liveBatches = liveBatchesMax): Promise<readonly Measurement[]> => {
  const { openFor, batches } = await createIngestLoad(backfillSeconds);
  const running = await openFor();
  const lines = (await warmUp(running, batches)).flat();
  const live = lines.splice(lines.length - liveLines * liveBatches);
  const share = Math.ceil(lines.length / senders);
  const shares = Array.from({ length: senders }, (_, i) => lines.slice(i * share, (i + 1) * share));
  let isOver = false;
  const backfill = secondsFor(() => Promise.all(shares.map((one) => sendAll(running, one)))).finally(() => {
    isOver = true;
  });
  const took: number[] = [];
  while (!isOver && live.length > 0) took.push(await secondsFor(() => sendAll(running, live.splice(0, liveLines))));
  const name = `${senders} ${senders === 1 ? 'sender fills' : 'senders fill'} in history`;
  const rate = lines.length / (await backfill);
  await running.close();
  if (liveBatches === 0) return [{ name: 'backfill alone, 1 sender', value: rate, unit: 'reports/s' }];
  const median = took.sort((a, b) => a - b)[Math.floor(took.length / 2)] ?? 0;
  const longest = `longest of ${took.length}: ${((took.at(-1) ?? 0) * 1_000).toFixed(0)} ms`;
  return [
    { name: `live batch of ${liveLines} while ${name}`, value: median * 1_000, unit: 'ms', note: longest },
    { name: `backfill meanwhile, ${name}`, value: rate, unit: 'reports/s' },
  ];
};

export const benchBackfill = async (): Promise<readonly Measurement[]> => [
  ...(await measureBackfill(1, 0)),
  ...(await measureBackfill(1)),
  ...(await measureBackfill(4)),
];

export const benchIngest = async (): Promise<readonly Measurement[]> => {
  const { openFor, batches: all } = await createIngestLoad(seconds);
  const running = await openFor();
  const batches = await warmUp(running, all);
  const measured = linesOf(batches);
  const recovery = await measureRecovery(
    measured * signaturesPerReport,
    fullReportsOf(all.flat().slice(0, recoveredReports)),
  );
  const ingest = await secondsToTakeIn(running, batches);
  const again = await secondsToTakeIn(running, batches);
  await running.close();
  return [
    { name: 'bare recovery, WebAssembly, all cores', value: measured / recovery, unit: 'reports/s' },
    { name: 'verified and durable ingest, all cores', value: measured / ingest, unit: 'reports/s' },
    { name: 'ingest to bare recovery', value: recovery / ingest, unit: 'ratio' },
    { name: 'the same reports again, recognised', value: measured / again, unit: 'reports/s' },
  ];
};
