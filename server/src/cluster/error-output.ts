// Standard error of workers, which the primary writes.

/** What workers may have on its way to a standard error that nobody reads. */
const errorBytesMax = 1_048_576;

/**
 * Writes what a worker says on standard error, such as a crash of Node's. A worker has none of the primary's own outputs: a process that gets a pipe makes it
 * blocking for all that have it, and a primary that waits to write to one that nobody reads cannot exit.
 */
export const writeError = (bytes: Buffer): void => {
  if (process.stderr.writableLength < errorBytesMax) process.stderr.write(bytes);
};
