// The writer thread of LMDB: it runs requests in order, each as one synchronous transaction that is flushed before it answers. A flush takes
// milliseconds, too long for the loop that serves requests. Without the writer's place it adds usage only, as any process may. This is the
// thread's entry file, so its state is at module level.
import { join } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import type { ThreadMessage } from '../../../runtime/threads.ts';
import { createDamageLog } from '../../damage.ts';
import {
  type Act,
  type Damage,
  type KeyedRecord,
  type NewReport,
  type QuarantinedReport,
  type Retention,
  type SecretUse,
  StoreError,
  type UsageRow,
} from '../../store.ts';
import { putAdminRecords } from '../admin.ts';
import { type Environment, neverReopened, openEnvironment } from '../environment.ts';
import { openReportTables } from '../report-tables.ts';
import { addUsage } from '../usage.ts';
import { type ExitGate, enterGate } from './exit-gate.ts';
import { addToQuarantine } from './quarantine.ts';
import { createReportAppender } from './report-writer.ts';
import { trimSlice } from './retention.ts';
import { holdWriterToken, probeWriting, type WriterToken } from './writer-token.ts';

/** What the thread is asked to do. `reopen` has no answer: the reading side of the process has released the environment. */
export type WriterRequest =
  | ({ readonly act: 'append' } & PackedBatch)
  | { readonly act: 'trim'; readonly retention: Retention }
  | { readonly act: 'quarantine'; readonly rejected: readonly QuarantinedReport[] }
  | {
      readonly act: 'usage';
      readonly rows: readonly UsageRow[];
      readonly uses: readonly SecretUse[];
      readonly nowMs: number;
    }
  | { readonly act: 'put'; readonly records: readonly KeyedRecord[]; readonly entry: Act }
  | { readonly act: 'probe'; readonly part: 'reports' | 'administration' }
  | { readonly act: 'reopen'; readonly part: 'reports' | 'administration' }
  | { readonly act: 'close' };

/** A batch as it crosses threads: all bytes in one buffer, since every view that is sent takes its whole buffer along. */
export type PackedBatch = {
  readonly reports: readonly (Omit<NewReport, 'fullReport'> & { readonly end: number })[];
  readonly bytes: Uint8Array<ArrayBuffer>;
};

/** What it says unasked: how many readers were found gone and had their slots freed; a record that it found damaged. */
export type WriterRemark = { readonly staleReaders: number } | { readonly damaged: Damage };

/** What it answers, with the seconds it took. `isClosed`: LMDB refuses the environment, which was closed here to be opened again. */
export type WriterAnswer =
  | { readonly result: unknown; readonly seconds: number; readonly error?: never }
  | ({ readonly result?: never } & WriterFailure);
export type WriterFailure = { readonly error: ThreadError; readonly isClosed: boolean };

/** An error as it crosses threads. lmdb's code is the system's number. */
export type ThreadError = { readonly name: string; readonly message: string; readonly code: unknown };

/** The files that this process has opened, of each environment. */
export type StoreFiles = Readonly<Record<'reports' | 'admin', string | undefined>>;

export type WriterSettings = {
  /** The folder of the store. */
  readonly folder: string;
  readonly files: StoreFiles;
  /** Absent where only usage is added. */
  readonly place: WriterToken | undefined;
  /** How often this thread closed the reports' environment, and the administrative one, to have them opened again. */
  readonly closings: Int32Array<SharedArrayBuffer>;
  readonly checkReadersEveryMs: number;
  /** Where the process waits at its exit for what is being done here. */
  readonly gate: ExitGate;
};

const { folder, files, place, closings, checkReadersEveryMs, gate } = workerData as WriterSettings; // given by writer.ts
const { act: inAct, leave } = enterGate(gate);
const say = (message: ThreadMessage<WriterAnswer, WriterRemark>): void => parentPort?.postMessage(message);
const damage = createDamageLog((damaged) => say({ remark: { damaged } }));

const openWriting = (writerPlace: WriterToken) => {
  const environment = openEnvironment(join(folder, 'reports'), false, neverReopened(files.reports));
  try {
    holdWriterToken(environment, writerPlace);
    const tables = openReportTables(environment);
    const writer = createReportAppender(environment, tables, damage);
    return { environment, tables, writer };
  } catch (error) {
    void environment.root.close();
    throw error;
  }
};

let open: ReturnType<typeof openWriting> | undefined = place && openWriting(place);
let mayReopen = false;
let isAdministrationRefused = false;

const beingReopened = () => new StoreError('store_unavailable', 'The store is being reopened. Retry shortly.');

const countClosing = (which: 0 | 1): void => {
  Atomics.add(closings, which, 1);
  Atomics.notify(closings, which);
};

const requireOpen = (): NonNullable<typeof open> => {
  if (open !== undefined) return open;
  if (place === undefined || !mayReopen) throw beingReopened();
  const opened = openWriting(place);
  try {
    opened.environment.flush(); // what the failed commit left behind must not reach the disk after what follows
  } catch (error) {
    void opened.environment.root.close();
    throw error;
  }
  open = opened;
  return opened;
};

// A reader that was killed inside a transaction pins the pages it saw; its slot is freed here, now and then.
const checkReaders = (): void => {
  try {
    if (open !== undefined) say({ remark: { staleReaders: open.environment.root.readerCheck() } });
  } catch {
    // The next transaction fails with the same, and is answered.
  }
};

const unpackBatch = ({ reports, bytes }: PackedBatch): readonly NewReport[] =>
  reports.map(({ end, ...report }, i) => ({ ...report, fullReport: bytes.subarray(reports[i - 1]?.end ?? 0, end) }));

/** The administrative environment is open only for as long as it is written to: its failure then ends with it. */
const withAdministration = (act: (environment: Environment) => void): void => {
  if (isAdministrationRefused) throw beingReopened();
  const environment = openEnvironment(join(folder, 'admin'), false, neverReopened(files.admin));
  try {
    if (place !== undefined) holdWriterToken(environment, place);
    act(environment);
  } catch (error) {
    isAdministrationRefused = environment.isRefused();
    throw error;
  } finally {
    void environment.root.close();
    if (isAdministrationRefused) countClosing(1);
  }
};

const perform = (request: Exclude<WriterRequest, { act: 'reopen' | 'close' }>): unknown => {
  if (request.act === 'usage')
    return withAdministration((environment) =>
      addUsage(environment, damage, request.rows, request.uses, request.nowMs),
    );
  if (request.act === 'put')
    return withAdministration((environment) => putAdminRecords(environment, damage, request.records, request.entry));
  if (request.act === 'probe' && request.part === 'administration') return withAdministration(probeWriting);
  const { environment, tables, writer } = requireOpen();
  if (request.act === 'append') return writer.append(unpackBatch(request));
  if (request.act === 'quarantine') return addToQuarantine(environment, tables.quarantine, request.rejected);
  if (request.act === 'probe') return probeWriting(environment);
  writer.forget();
  return trimSlice(environment, tables, request.retention, damage);
};

/** Closes an environment that LMDB refuses, so that the reading side can open it again. */
const closeRefused = (): void => {
  if (open === undefined || !open.environment.isRefused()) return;
  void open.environment.root.close();
  open = undefined;
  mayReopen = false;
  countClosing(0);
};

const answer = (request: Parameters<typeof perform>[0]): WriterAnswer => {
  const startedMs = performance.now();
  try {
    return { result: perform(request), seconds: (performance.now() - startedMs) / 1_000 };
  } catch (cause) {
    return describeFailure(cause, isAdministrative(request) ? 'administration' : 'reports');
  }
};

const isAdministrative = (request: Parameters<typeof perform>[0]): boolean =>
  ['usage', 'put'].includes(request.act) || (request.act === 'probe' && request.part === 'administration');

/** What a failed transaction leaves: nothing of it is remembered, and an environment that LMDB refuses is closed. */
const describeFailure = (cause: unknown, part: 'reports' | 'administration'): WriterFailure => {
  open?.writer.forget(); // what it remembered of streams may belong to the transaction that failed
  closeRefused();
  const { name, message, code } = cause as Error & { code?: unknown }; // thrown by lmdb or by us: errors
  const isClosed = part === 'administration' ? isAdministrationRefused : place !== undefined && open === undefined;
  return { error: { name, message, code }, isClosed };
};

const readerCheck = setInterval(inAct, checkReadersEveryMs, checkReaders);
const receive = (request: WriterRequest): void => {
  if (request.act === 'reopen') {
    if (request.part === 'reports') mayReopen = true;
    else isAdministrationRefused = false;
  } else if (request.act !== 'close') say({ answer: answer(request) });
  else {
    clearInterval(readerCheck);
    void open?.environment.root.close();
    parentPort?.close();
  }
};
parentPort?.on('message', (request: WriterRequest) => inAct(() => receive(request)));
checkReaders();
leave();
say({ ready: true });
