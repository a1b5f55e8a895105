// Owns the thread that writes reports: requests come in order, each is one synchronous transaction that is flushed when it
// returns. A thread of its own because a flush takes milliseconds, which no request loop may spend.
import { parentPort, workerData } from 'node:worker_threads';
import { createDamageLog } from './damage.ts';
import { buildRollups } from './lmdb-candles.ts';
import { openEnvironment } from './lmdb-environment.ts';
import { addToQuarantine } from './lmdb-quarantine.ts';
import { openReportTables } from './lmdb-report-tables.ts';
import { createReportWriter } from './lmdb-report-writer.ts';
import { trimSlice } from './lmdb-retention.ts';
import type { Damage, NewReport, QuarantinedReport, Retention } from './store.ts';

/** What the thread is asked to do. */
export type WriterRequest =
  | ({ readonly act: 'append' } & PackedBatch)
  | { readonly act: 'trim'; readonly retention: Retention }
  | { readonly act: 'quarantine'; readonly refused: readonly QuarantinedReport[] }
  | { readonly act: 'close' };

/** A batch as it crosses threads: all bytes in one buffer, since every view that is sent takes its whole buffer along. */
export type PackedBatch = {
  readonly reports: readonly (Omit<NewReport, 'fullReport'> & { readonly end: number })[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** What it says unasked: how many readers were found gone and had their slots freed; a record that it found damaged. */
export type WriterRemark = { readonly staleReaders: number } | { readonly damaged: Damage };

/** What it answers, in the order asked, with the seconds it took. LMDB's error code is the system's. */
export type WriterAnswer =
  | { readonly result: unknown; readonly seconds: number; readonly error?: never }
  | {
      readonly result?: never;
      readonly error: { readonly message: string; readonly code: unknown; readonly corrupt: boolean };
    };

const { folder, checkReadersEveryMs } = workerData as { folder: string; checkReadersEveryMs: number }; // given by lmdb-writer.ts
const environment = openEnvironment(folder, false);
const tables = openReportTables(environment);
const damage = createDamageLog((damaged) => parentPort?.postMessage({ damaged } satisfies WriterRemark));
const writer = createReportWriter(environment, tables, damage);
// A reader that was killed inside a transaction pins the pages it saw; its slot is freed here, now and then.
const checkReaders = (): void =>
  parentPort?.postMessage({ staleReaders: environment.root.readerCheck() } satisfies WriterRemark);
checkReaders();
const readerCheck = setInterval(checkReaders, checkReadersEveryMs);

// What an older store lacks is made between requests, each slice a transaction of its own; one that fails is tried again later.
const buildPauseMs = 20;
const buildRetryMs = 10_000;
const buildNext = (): void => {
  try {
    if (environment.root.transactionSync(() => buildRollups(tables, damage)))
      buildTimer = setTimeout(buildNext, buildPauseMs);
  } catch {
    buildTimer = setTimeout(buildNext, buildRetryMs);
  }
};
let buildTimer = setTimeout(buildNext, 0);

const unpackBatch = ({ reports, bytes }: PackedBatch): readonly NewReport[] =>
  reports.map(({ end, ...report }, i) => ({ ...report, fullReport: bytes.subarray(reports[i - 1]?.end ?? 0, end) }));

const perform = (request: WriterRequest): unknown => {
  if (request.act === 'append') return writer.append(unpackBatch(request));
  if (request.act === 'trim') {
    writer.forget();
    return trimSlice(environment, tables, request.retention, damage);
  }
  if (request.act === 'quarantine') return addToQuarantine(environment, tables.quarantine, request.refused);
  return undefined;
};

const answer = (request: WriterRequest): WriterAnswer => {
  const startedMs = performance.now();
  try {
    return { result: perform(request), seconds: (performance.now() - startedMs) / 1_000 };
  } catch (cause) {
    writer.forget(); // what it remembered of streams may belong to the transaction that failed
    const { message, code, name } = cause as Error & { code?: unknown };
    return { error: { message, code, corrupt: name === 'CorruptRecordError' } };
  }
};

const port = parentPort;
port?.on('message', async (request: WriterRequest) => {
  port.postMessage(answer(request));
  if (request.act !== 'close') return;
  clearInterval(readerCheck);
  clearTimeout(buildTimer);
  await environment.root.close();
  port.close();
});
