// Reads stream, window and price from the signed body of a stored report, and copies one that stays in memory.
import {
  decodeFullReport,
  type FeedId,
  headlinePriceOf,
  ReportFormatError,
  readReportBody,
  windowOf,
} from '@sealpost/protocol';
import type { NewReport, StoredReport, Window } from '../store.ts';

export const toHex = (bytes: Uint8Array): `0x${string}` => `0x${Buffer.from(bytes).toString('hex')}`;

/** What a report says of itself, with its price where its fields can be decoded; undefined where it cannot be read. */
export function contentsOf(
  fullReport: Uint8Array,
): (Window & { readonly feedId: FeedId; readonly price: bigint | undefined }) | undefined {
  try {
    const body = readReportBody(decodeFullReport(toHex(fullReport)).body);
    const { validFromMs, observationsMs } = windowOf(body);
    return { feedId: body.feedId, validFromMs, observationsMs, price: headlinePriceOf(body) };
  } catch (error) {
    if (error instanceof ReportFormatError) return undefined;
    throw error;
  }
}

/** A report with its price, for the roll-up of its minute. */
export function withPrice(report: StoredReport): NewReport {
  const price = contentsOf(report.fullReport)?.price;
  return price === undefined ? report : { ...report, price }; // it is kept as it is
}

/** The report with bytes of its own: Node cuts small buffers from pieces of 8 KB, and keeping one of them keeps its whole piece. */
export function keepReport({ feedId, validFromMs, observationsMs, fullReport }: StoredReport): StoredReport {
  const own = Buffer.allocUnsafeSlow(fullReport.length);
  own.set(fullReport);
  return { feedId, validFromMs, observationsMs, fullReport: own };
}
