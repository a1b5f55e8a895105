// A file that exists while a process writes to a store. If the next start finds it, the last process crashed, was killed or lost power; it counts how often
// in a row, which exposes crashes in native code that nothing can catch (D124).
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export type CrashMarker = {
  /** How many processes in a row ended without closing the store; 0 after a clean stop. */
  readonly unexpectedEnds: number;
  /** Leaves the mark where that was put off. */
  readonly leave: () => void;
  /** Removes the mark, if this process left it. */
  readonly clear: () => void;
};

/** Leaves the mark in a folder, or puts that off where another process still has its own there. A folder that cannot be written to has none. */
export function leaveCrashMarker(folder: string, isTaken: boolean): CrashMarker {
  const path = join(folder, 'running');
  const unexpectedEnds = isTaken ? 0 : endsIn(path);
  let isLeft = false;
  const leave = (): void => {
    if (isLeft) return;
    isLeft = true;
    try {
      writeFileSync(path, `${JSON.stringify({ pid: process.pid, unexpectedEnds })}\n`);
    } catch {
      // The disk is full or read-only; the writer's next transaction says so.
    }
  };
  const clear = (): void => {
    if (!isLeft) return;
    try {
      rmSync(path, { force: true });
    } catch {
      // The disk fails or is read-only: the next start says that this process did not end as it should.
    }
  };
  if (!isTaken) leave();
  return { unexpectedEnds, leave, clear };
}

const endsIn = (path: string): number => {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return 0;
  }
  try {
    const { unexpectedEnds } = JSON.parse(text) as { unexpectedEnds?: unknown }; // ours, or cut short
    return (Number.isSafeInteger(unexpectedEnds) ? (unexpectedEnds as number) : 0) + 1; // an integer
  } catch {
    return 1;
  }
};
