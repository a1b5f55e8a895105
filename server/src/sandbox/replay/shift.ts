// Moves a report to another time: every time in its body, by the table of schemas.
import {
  decodeReportBody,
  encodeReportBody,
  type ReportBody,
  reportSchemas,
  timeResolutionOf,
} from '@sealpost/protocol';

const perSecond = { seconds: 1n, nanoseconds: 1_000_000_000n } as const;

/** The body with all its times moved by seconds. Times that are 0 are none, and stay so. */
export const shiftBody = (
  encoded: `0x${string}`,
  seconds: number,
): { readonly body: `0x${string}`; readonly fields: ReportBody } => {
  const before = decodeReportBody(encoded);
  const fields: Record<string, unknown> = { ...before };
  const streamUnits = timeResolutionOf(before.feedId) === 'milliseconds' ? 1_000n : 1n;
  for (const { name, unit } of reportSchemas[before.version].fields) {
    const units = unit === 'stream time' ? streamUnits : isTime(name, unit) ? perSecond[unit] : undefined;
    const value = fields[name];
    if (units === undefined || (typeof value !== 'number' && typeof value !== 'bigint')) continue;
    fields[name] = moved(value, BigInt(seconds) * units);
  }
  const after = fields as ReportBody; // the same fields, of the same types
  return { body: encodeReportBody(after), fields: after };
};

// The only seconds that are not a time are the term of a rate.
const isTime = (name: string, unit: string): unit is keyof typeof perSecond =>
  (unit === 'seconds' || unit === 'nanoseconds') && name !== 'duration';

const moved = (value: number | bigint, by: bigint): number | bigint => {
  const time = BigInt(value);
  const later = time === 0n || time + by < 0n ? time : time + by;
  return typeof value === 'number' ? Number(later) : later;
};
