// Memory that event streams copy reports into while they catch up.
import type { AppendedFilter } from '../store/store.ts';

type CopyBytes = NonNullable<AppendedFilter['copy']>;

/** Bytes of the reports of a slice, some 1 KB each. */
const roomBytes = 128 * 1_024;

/** Memory for the reports of one slice at a time. */
export type ReportRoom = {
  /** Forgets what was copied before; returns what copies. */
  readonly begin: () => CopyBytes;
};

/**
 * Makes room that all catch-ups of a process share: their slices run one at a time, and a slice's reports are rendered before it ends. With memory of
 * their own, 60 MB of reports per second made V8 mark its whole heap about once a second. What does not fit has memory of its own.
 */
export const createReportRoom = (): ReportRoom => {
  let room: Buffer | undefined;
  let used = 0;
  const copy: CopyBytes = (bytes) => {
    room ??= Buffer.allocUnsafeSlow(roomBytes);
    if (used + bytes.length > room.length) return Buffer.from(bytes);
    const copied = room.subarray(used, used + bytes.length);
    copied.set(bytes);
    used += bytes.length;
    return copied;
  };
  return {
    begin: () => {
      used = 0;
      return copy;
    },
  };
};
