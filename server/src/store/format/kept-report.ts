// Reports that stay in memory.
import type { StoredReport } from '../store.ts';

/** The report with bytes of its own: Node cuts small buffers from pieces of 8 KB, and keeping one of them keeps its whole piece. */
export const keepReport = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): StoredReport => {
  const own = Buffer.allocUnsafeSlow(fullReport.length);
  own.set(fullReport);
  return { feedId, validFromMs, observationsMs, fullReport: own };
};
