// The spread between bid and ask, relative to the middle of both.
import type { DecodedReport } from '@sealpost/client';

/** Hundredths of a basis point. */
const spreadUnits = 1_000_000n;

/** In hundredths of a basis point, rounded; negative if bid and ask are crossed. Undefined without both, or if their middle is not positive. */
export function spreadOf(report: Pick<DecodedReport, 'bid' | 'ask'> | undefined): bigint | undefined {
  if (report?.bid === undefined || report.ask === undefined) return undefined;
  const { bid, ask } = report;
  const twice = bid + ask;
  if (twice <= 0n) return undefined;
  const sign = ask < bid ? -1n : 1n;
  return (2n * (ask - bid) * spreadUnits + (sign * twice) / 2n) / twice;
}

/** `1.25 bp`; a spread that is too small to show is `< 0.01 bp`. */
export function formatSpread(spread: bigint, isZero: boolean): string {
  if (spread === 0n && !isZero) return '< 0.01 bp';
  const size = spread < 0n ? -spread : spread;
  return `${spread < 0n ? '−' : ''}${size / 100n}.${String(size % 100n).padStart(2, '0')} bp`;
}
