// Whether a price is current: age decides, not the connection's last known state.
import type { DecodedReport } from '@sealpost/client';
import { formatAge } from './format.ts';
import { marketStatusOf } from './market-status.ts';

/** A price is old after three intervals, and two seconds for delivery. */
export const isOldPrice = (ageMs: number, intervalMs: number | undefined): boolean =>
  ageMs > 3 * (intervalMs ?? 1_000) + 2_000;

/** Is a price muted in a list? Old ones are, but while connected not those of a closed market, which are old as usual. */
export const isMutedPrice = (
  ageMs: number,
  intervalMs: number | undefined,
  isConnected: boolean,
  isClosed: boolean,
): boolean => !(isConnected && isClosed) && isOldPrice(ageMs, intervalMs);

/** Is the report's market closed? Then an old report is normal. */
export const isMarketClosed = ({ fields, version }: Pick<DecodedReport, 'fields' | 'version'>): boolean =>
  'marketStatus' in fields && marketStatusOf(version, fields.marketStatus).isOpen === false;

/** What to say next to a price that is not current; undefined while it is. */
export function describeOldPrice(
  ageMs: number,
  intervalMs: number | undefined,
  isConnected: boolean,
  isClosed: boolean,
): string | undefined {
  if (!isOldPrice(ageMs, intervalMs)) return undefined;
  if (!isConnected) return `Disconnected, last price ${formatAge(ageMs)} old`;
  return isClosed
    ? `Market closed, last price ${formatAge(ageMs)} old`
    : `No new report, last price ${formatAge(ageMs)} old`;
}
