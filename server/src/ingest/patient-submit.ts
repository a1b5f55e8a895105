// Submits reports until the store takes them: for a network within this process, whose reports nobody would send again.
import { setTimeout as sleep } from 'node:timers/promises';
import { isPassingFailure } from '../store/passing-failures.ts';
import type { Ingest } from './ingest.ts';
import type { LineResult } from './report-line.ts';

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
