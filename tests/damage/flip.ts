// One flipped bit of a file.
import { closeSync, openSync, readSync, writeSync } from 'node:fs';

/** Flips a bit of the byte at a place; the same again undoes it. */
export const flipInFile = (file: string, at: number, bit: number): void => {
  const descriptor = openSync(file, 'r+');
  const byte = Buffer.alloc(1);
  readSync(descriptor, byte, 0, 1, at);
  writeSync(descriptor, Uint8Array.of((byte[0] as number) ^ (1 << bit)), 0, 1, at); // one was read
  closeSync(descriptor);
};
