// Writes of reports, watched: once every attempt has failed for a while, writing counts as stopped until one works, or until the database would take the
// batch that failed last (D135).
import { type NewReport, StoreError } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { createWriteState, type WriteState, type WritingTimes } from '../write-state.ts';
import { type AppendedBatch, appendBatch, confirmRead } from './append.ts';
import { type Run, sqlState, uniqueViolation, type WriteConnection } from './connection.ts';
import type { Partitions } from './partitions.ts';
import type { Tables } from './schema.ts';

export type ReportWrites = Pick<WriteState, 'close' | 'current'> & {
  /** Runs the transaction that appends a batch. */
  readonly write: (batch: readonly NewReport[], act: (run: Run) => Promise<AppendedBatch>) => Promise<AppendedBatch>;
};

export type ReportWritesOptions = WritingTimes & {
  readonly tell: (event: StoreEvent) => void;
  readonly tables: Tables;
  readonly partitions: Pick<Partitions, 'partitionOf'>;
};

/** A fail-over takes less. */
const stallMsDefault = 10_000;

/** What a failure says about the database; undefined of one about a report, and of a store that was closed. */
const failureOf = (error: unknown): StoreError | undefined => {
  if (error instanceof StoreError) return error.code === 'store_closed' ? undefined : error;
  const state = sqlState(error);
  if (state === undefined || state === uniqueViolation) return undefined;
  return new StoreError('store_write_failed', `The database rejects this: ${(error as Error).message}.`); // it has a state
};

export function createReportWrites({ write }: WriteConnection, options: ReportWritesOptions): ReportWrites {
  const { tell, tables, partitions, probeEveryMs, stallMs: graceMs = stallMsDefault } = options;
  let failed: { readonly at: number; readonly batch: readonly NewReport[] } | undefined;
  const probe = async (): Promise<void> => {
    const tried = failed;
    await tryAppending({ write, tables, partitions }, tried?.batch ?? []).catch((error: unknown) => {
      const failure = failureOf(error);
      if (failure === undefined) throw error;
      failed ??= tried; // a batch was stored while this one failed
      state.failed(failure);
      throw error;
    });
    // A reason that a try does not meet, such as one of the commit, counts for as long as batches are sent.
    if (failed !== tried || (tried !== undefined && performance.now() - tried.at < graceMs)) return;
    failed = undefined;
    state.worked();
  };
  const state = createWriteState({ part: 'reports', tell, probe, probeEveryMs, graceMs });
  return {
    write: async (batch, act) => {
      const result = await write(act).catch((error: unknown) => {
        const failure = failureOf(error);
        if (failure !== undefined) {
          failed = { at: performance.now(), batch };
          state.failed(failure);
        }
        throw error;
      });
      if (result.stored.length === 0) return result; // duplicates, which need no space, prove nothing
      failed = undefined;
      state.worked();
      return result;
    },
    current: state.current,
    close: state.close,
  };
}

type Trial = Pick<WriteConnection, 'write'> & Pick<ReportWritesOptions, 'tables' | 'partitions'>;

/** Appends a batch in a transaction that is rolled back, and commits a word. It takes the same locks and the same space; what it wrote is left to vacuum. */
const tryAppending = async ({ write, tables, partitions }: Trial, batch: readonly NewReport[]): Promise<void> => {
  const undo = new Error('The database would take this batch.');
  const append = async (run: Run): Promise<never> => {
    if (batch.length > 0)
      await appendBatch(run, tables, partitions.partitionOf, batch, { origin: '', salt: 0, comparesAll: true });
    throw undo;
  };
  await write(append).catch((error: unknown) => {
    if (error !== undo) throw error;
  });
  await write((run) => confirmRead(run, tables));
};
