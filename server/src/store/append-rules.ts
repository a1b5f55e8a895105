// The rules by which every engine accepts or rejects a report, given the stored reports of its stream and those accepted before it in the same
// batch (D145).
import { decodeFullReport, ReportFormatError } from '@sealpost/protocol';
import type { AppendOutcome, StoredReport, Window } from './store.ts';

/** A report that is stored or accepted; without bytes where they are damaged. */
export type Neighbor = Window & { readonly fullReport?: Uint8Array | undefined };

/** Why a report is not stored; undefined when it is, in a gap or in the place of a damaged one. */
export function judgeReport(
  report: StoredReport,
  neighbors: readonly Neighbor[],
): Exclude<AppendOutcome, 'stored'> | undefined {
  const same = neighbors.find(({ observationsMs }) => observationsMs === report.observationsMs);
  if (same?.fullReport !== undefined)
    return isSameReport(same.fullReport, report.fullReport) ? 'duplicate' : 'conflict';
  const others = neighbors.filter(({ observationsMs }) => observationsMs !== report.observationsMs);
  return others.some((other) => isOverlapping(report, other)) ? 'overlap' : undefined;
}

const isOverlapping = (a: Window, b: Window): boolean =>
  a.validFromMs <= b.observationsMs && b.validFromMs <= a.observationsMs;

/** Any quorum may sign a body, in any round: reports with the same body are the same report. */
const isSameReport = (a: Uint8Array, b: Uint8Array): boolean => {
  if (Buffer.compare(a, b) === 0) return true;
  const body = bodyOf(a);
  return body !== undefined && body === bodyOf(b);
};

const bodyOf = (fullReport: Uint8Array): string | undefined => {
  try {
    return decodeFullReport(`0x${Buffer.from(fullReport).toString('hex')}`).body;
  } catch (error) {
    if (error instanceof ReportFormatError) return undefined; // a store keeps any bytes
    throw error;
  }
};
