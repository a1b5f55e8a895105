// The line of a stream's prices over the last day. Gaps stay blank.
import type { Day, DayPoint } from '../state/days.ts';
import { formatPrice } from '../ui/format.ts';
import { type PriceDigits, splitFixed } from '../ui/price/digits.ts';

const width = 96;
const height = 28;
/** Room for the line's thickness. */
const edge = 2;

/** The path of the line in a box of 96 by 28. Floats are exact enough to draw with. */
export function trendPath(points: readonly DayPoint[]): string {
  const values = points.map(({ price }) => Number(price));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const [from, to] = [points[0]?.ms ?? 0, points.at(-1)?.ms ?? 0];
  const x = (ms: number): string => ((width * (ms - from)) / Math.max(1, to - from)).toFixed(1);
  const y = (value: number): string =>
    (high === low ? height / 2 : height - edge - ((height - 2 * edge) * (value - low)) / (high - low)).toFixed(1);
  return points
    .map(({ ms, isAfterGap }, i) => `${i === 0 || isAfterGap ? 'M' : 'L'}${x(ms)} ${y(values[i] ?? low)}`)
    .join('');
}

const lowestOf = (prices: readonly bigint[]): bigint => prices.reduce((a, b) => (b < a ? b : a));
const highestOf = (prices: readonly bigint[]): bigint => prices.reduce((a, b) => (b > a ? b : a));

type TrendProps = {
  readonly day: Day;
  readonly digits: PriceDigits | undefined;
  /** Without color: the newest price is old. */
  readonly isMuted: boolean;
};

export function Trend({ day, digits, isMuted }: TrendProps) {
  const prices = day.points.map(({ price }) => price);
  const [first = 0n, last = 0n] = [prices[0], prices.at(-1)];
  const text = (price: bigint): string => (digits === undefined ? formatPrice(price) : splitFixed(price, digits).head);
  const said = `From ${text(first)} to ${text(last)}, low ${text(lowestOf(prices))}, high ${text(highestOf(prices))}`;
  return (
    <svg
      class={`trend ${isMuted || last === first ? '' : last < first ? 'fell' : 'rose'}`}
      viewBox={`0 0 ${width} ${height}`}
      preserveAspectRatio="none"
      role="img"
      aria-label={said}
    >
      <title>{said}</title>
      <path d={trendPath(day.points)} />
    </svg>
  );
}
