// Reading what may be damaged.
import { CorruptRecordError } from '../store.ts';

/** What can be read; undefined where bytes are damaged. */
export const attempt = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof CorruptRecordError || error instanceof RangeError) return undefined;
    throw error;
  }
};
