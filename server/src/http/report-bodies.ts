// Owns rendering stored reports into bodies. JSON is put together from parts that need no escaping: hex and integers.
import type { StoredReport } from '../store/store.ts';

/** One report as on the wire. */
export const renderReport = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): string => {
  const bytes = Buffer.isBuffer(fullReport) ? fullReport : Buffer.from(fullReport);
  return `{"feedID":"${feedId}","validFromTimestamp":${Math.floor(validFromMs / 1_000)},"observationsTimestamp":${Math.floor(observationsMs / 1_000)},"fullReport":"0x${bytes.toString('hex')}"}`;
};

/** `{"reports":[…]}`, with what else the body holds. */
export const renderReports = (reports: readonly StoredReport[], rest = ''): string =>
  `{"reports":[${reports.map(renderReport).join(',')}]${rest}}`;
