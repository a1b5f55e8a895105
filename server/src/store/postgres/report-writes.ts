// Writes of reports, watched: once every attempt has failed for a while, writing counts as stopped until one works.
import { type NewReport, StoreError } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { createWriteState, type WriteState, type WritingTimes } from '../write-state.ts';
import { confirmRead } from './append.ts';
import { type Run, sqlState, uniqueViolation, type WriteConnection } from './connection.ts';
import { type Partitions, readPresent } from './partitions.ts';
import { type Tables, takeLock } from './schema.ts';

export type ReportWrites = Pick<WriteState, 'close' | 'current'> & {
  /** Runs the transaction that appends a batch. */
  readonly write: <T>(batch: readonly NewReport[], act: (run: Run) => Promise<T>) => Promise<T>;
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

export const createReportWrites = ({ write }: WriteConnection, options: ReportWritesOptions): ReportWrites => {
  const { tell, tables, partitions, probeEveryMs, stallMs: graceMs = stallMsDefault } = options;
  let failed: { readonly at: number; readonly batch: readonly NewReport[] } | undefined;
  const probe = async (): Promise<void> => {
    const leaves = new Set(failed?.batch.map(({ observationsMs }) => partitions.partitionOf(observationsMs).reports));
    await write((run) => tryAppending(run, tables, [...leaves])).catch((error: unknown) => {
      const failure = failureOf(error);
      if (failure !== undefined) state.failed(failure);
      throw error;
    });
    // It writes less than a batch: while batches fail, that it works does not count.
    if (failed === undefined || performance.now() - failed.at >= graceMs) state.worked();
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
      failed = undefined;
      state.worked();
      return result;
    },
    current: state.current,
    close: state.close,
  };
};

/** Takes the locks of a batch for these partitions, and commits durably. */
const tryAppending = async (run: Run, t: Tables, leaves: readonly string[]): Promise<void> => {
  await takeLock(run, t, 'reports');
  for (const leaf of await readPresent(run, leaves)) await run(`LOCK TABLE ${leaf} IN ROW EXCLUSIVE MODE`);
  await confirmRead(run, t);
};
