// Failures of a store that pass: the disk has space again, the database answers again.
import { StoreError, type StoreErrorCode } from './store.ts';

const passingCodes: readonly StoreErrorCode[] = [
  'store_disk_full',
  'store_write_failed',
  'store_unavailable',
  'store_outcome_unknown',
];

/** Is it worth trying the same again later? */
export const isPassingFailure = (error: unknown): error is StoreError =>
  error instanceof StoreError && passingCodes.includes(error.code);
