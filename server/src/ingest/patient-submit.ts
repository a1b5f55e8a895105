// Submits reports until the store takes them: for a network within this process, whose reports nobody would send again.
import { setTimeout as sleep } from 'node:timers/promises';
import { StoreError, type StoreErrorCode } from '../store/store.ts';
import type { Ingest } from './ingest.ts';
import type { LineResult } from './report-line.ts';

/** Failures of a store that pass: the disk has space again, the database answers again. */
const passingCodes: readonly StoreErrorCode[] = [
  'store_disk_full',
  'store_write_failed',
  'store_unavailable',
  'store_outcome_unknown',
];

/** Is it worth trying the same again later? */
export const isPassingFailure = (error: unknown): error is StoreError =>
  error instanceof StoreError && passingCodes.includes(error.code);

const retryMsDefault = 1_000;

/** A failure that passes is waited out until the signal is aborted; any other is thrown. */
export const submitPatiently = async (
  ingest: Pick<Ingest, 'submit'>,
  lines: readonly string[],
  signal: AbortSignal,
  retryMs = retryMsDefault,
): Promise<readonly LineResult[]> => {
  for (;;) {
    try {
      return await ingest.submit(lines, 1);
    } catch (error) {
      if (!isPassingFailure(error)) throw error;
      await sleep(retryMs, undefined, { signal }).catch(() => {}); // aborted
      if (signal.aborted) throw error;
    }
  }
};
