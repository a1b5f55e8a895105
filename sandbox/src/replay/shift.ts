// Moves a report to another time: every time in its body, by the table of schemas.
import {
  fieldsOf,
  type ReportBody,
  type ReportHead,
  readReportBody,
  secondsMax,
  timeResolutionOf,
  withFields,
} from '@sealpost/protocol';

const perSecond = { seconds: 1n, nanoseconds: 1_000_000_000n } as const;

const latestOf = { uint32: 2n ** 32n - 1n, uint64: 2n ** 64n - 1n } as const;

/** The body with all its times moved by seconds; where only its head can be read, those of the head. Times that are 0 are none, and stay so; none is later than its field can say. */
export function shiftBody(
  encoded: `0x${string}`,
  seconds: number,
): { readonly body: `0x${string}`; readonly fields: ReportBody | ReportHead } {
  const before = readReportBody(encoded);
  const fields: Record<string, unknown> = { ...before };
  const streamUnits = timeResolutionOf(before.feedId) === 'milliseconds' ? 1_000n : 1n;
  for (const { name, type, unit } of fieldsOf(before)) {
    const units = unit === 'stream time' ? streamUnits : isTime(name, unit) ? perSecond[unit] : undefined;
    const value = fields[name];
    if (units === undefined || (typeof value !== 'number' && typeof value !== 'bigint')) continue;
    const latest = unit === 'stream time' ? BigInt(secondsMax) * units : latestOf[type === 'uint32' ? type : 'uint64'];
    fields[name] = moved(value, BigInt(seconds) * units, latest);
  }
  const after = fields as ReportBody | ReportHead; // the same fields, of the same types
  return { body: withFields(encoded, after), fields: after };
}

// The only seconds that are not a time are the term of a rate.
const isTime = (name: string, unit: string): unit is keyof typeof perSecond =>
  (unit === 'seconds' || unit === 'nanoseconds') && name !== 'duration';

const moved = (value: number | bigint, by: bigint, latest: bigint): number | bigint => {
  const time = BigInt(value);
  const sum = time + by > latest ? latest : time + by;
  const later = time === 0n || sum < 0n ? time : sum;
  return typeof value === 'number' ? Number(later) : later;
};
