// What this process holds in its heap, without what nobody can reach any more.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
/** Frees what nobody can reach any more. */
export const collectGarbage = runInNewContext('gc') as () => void; // what the flag adds

/** Bytes of the heap that are in use after a collection. */
export const heldHeapBytes = (): number => {
  collectGarbage();
  return process.memoryUsage().heapUsed;
};
