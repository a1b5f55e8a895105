// The digits of a report's prices: those of all prices of its stream that the page knows, as everywhere else.
import { useExplorer } from '../../state/explorer.ts';
import type { ReportReading } from '../report/reading.ts';
import type { VerdictState } from '../report/report-check.ts';
import { type PriceDigits, widenDigits } from './digits.ts';

const pricesOf = ({ decoded, fields = [] }: ReportReading): readonly bigint[] => [
  ...(decoded === undefined ? [] : [decoded.price]),
  ...fields.flatMap(({ unit, reading }) => (unit === 'price' && reading.kind === 'decimal' ? [reading.value] : [])),
];

/** As many for each of the report's prices; digits that only a forged price has are not added to the others. */
export function useReportDigits(report: ReportReading, state: VerdictState): PriceDigits | undefined {
  const { live } = useExplorer();
  const known = live.digits(report.feedId).value;
  const digits = widenDigits(known, pricesOf(report));
  if (state !== 'refused' || digits === undefined) return digits;
  return known ?? { shown: digits.shown, all: digits.shown };
}
