// How much the quarantine holds, whatever the engine: so many lines and so many bytes, the newest of them.
import { encodeRecord } from './format/record.ts';
import type { QuarantinedReport } from './store.ts';

/** Rejected lines that are kept. */
export const quarantineLinesMax = 10_000;

/** Bytes of rejected lines that are kept: about 10,000 lines with a report each. */
export const quarantineBytesMax = 16 * 2 ** 20;

/** The newest lines of a batch that fit, in their order. */
export const fitQuarantine = (refused: readonly QuarantinedReport[]): readonly QuarantinedReport[] => {
  let bytes = 0;
  const newest = refused.slice(-quarantineLinesMax);
  const firstOut = newest.findLastIndex((entry) => {
    bytes += encodeRecord(entry).length;
    return bytes > quarantineBytesMax;
  });
  return newest.slice(firstOut + 1);
};
