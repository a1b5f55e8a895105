// Which reports exist and when they are delivered, including faults. A pure function of the second, so that any slice of a time range
// can be produced alone.
import type { FeedId } from '@sealpost/protocol';
import type { SimulatedStream } from './streams.ts';

/** Observations from `from` to `to`, both included, are never produced. */
export type Gap = { readonly feedId: FeedId; readonly from: number; readonly to: number };

/** Observations from `from` to `to`, both included, are delivered `delaySeconds` late. */
export type Late = Gap & { readonly delaySeconds: number };

/** Injected faults. If several delays apply to a report, the longest counts. */
export type Faults = { readonly gaps?: readonly Gap[] | undefined; readonly late?: readonly Late[] | undefined };

/** One report to produce. */
export type Delivery<S extends SimulatedStream = SimulatedStream> = {
  readonly simulated: S;
  readonly observationsTimestamp: number;
  readonly deliveredAt: number;
};

/** The deliveries of each second. */
export type Schedule<S extends SimulatedStream = SimulatedStream> = {
  /** The deliveries in a second: in catalog order, older observations of a stream first. */
  readonly deliveriesAt: (second: number) => readonly Delivery<S>[];
  /** The longest delay of a report. */
  readonly delayMaxSeconds: number;
};

type Row<S extends SimulatedStream = SimulatedStream> = {
  readonly simulated: S;
  readonly gaps: readonly Gap[];
  readonly late: readonly Late[];
  /** Every delay that a report of the stream may have, longest first. */
  readonly delays: readonly number[];
};

const holds = ({ from, to }: Gap, second: number): boolean => from <= second && second <= to;

const isProduced = ({ simulated, gaps }: Row, second: number): boolean => {
  const { intervalSeconds, phaseSeconds, livesFrom, livesTo } = simulated;
  return (
    second % intervalSeconds === phaseSeconds &&
    second - intervalSeconds + 1 >= livesFrom &&
    second <= livesTo &&
    !gaps.some((gap) => holds(gap, second))
  );
};

const delayOf = ({ late }: Row, second: number): number =>
  late.reduce((longest, rule) => (holds(rule, second) ? Math.max(longest, rule.delaySeconds) : longest), 0);

/** The schedule of streams in catalog order. Throws on a fault with another stream or an empty range. */
export function createSchedule<S extends SimulatedStream>(
  streams: readonly S[],
  { gaps = [], late = [] }: Faults,
): Schedule<S> {
  for (const fault of [...gaps, ...late]) checkFault(fault, streams);
  const rows = streams.map((simulated): Row<S> => {
    const ours = (fault: Gap) => fault.feedId === simulated.stream.feedId;
    const delays = new Set([0, ...late.filter(ours).map(({ delaySeconds }) => delaySeconds)]);
    return { simulated, gaps: gaps.filter(ours), late: late.filter(ours), delays: [...delays].sort((a, b) => b - a) };
  });
  const deliveriesAt = (second: number): readonly Delivery<S>[] => {
    const deliveries: Delivery<S>[] = [];
    for (const row of rows) {
      for (const delay of row.delays) {
        const observationsTimestamp = second - delay;
        if (isProduced(row, observationsTimestamp) && delayOf(row, observationsTimestamp) === delay) {
          deliveries.push({ simulated: row.simulated, observationsTimestamp, deliveredAt: second });
        }
      }
    }
    return deliveries;
  };
  return { deliveriesAt, delayMaxSeconds: Math.max(0, ...rows.map(({ delays }) => delays[0] ?? 0)) };
}

const checkFault = (fault: Gap | Late, streams: readonly SimulatedStream[]): void => {
  if (!streams.some(({ stream }) => stream.feedId === fault.feedId)) {
    throw new RangeError(`A fault names ${fault.feedId}, which is not simulated.`);
  }
  if (!(fault.from <= fault.to))
    throw new RangeError(`A fault lasts from ${fault.from} to ${fault.to}, which is no span.`);
  if ('delaySeconds' in fault && !(Number.isInteger(fault.delaySeconds) && fault.delaySeconds > 0)) {
    throw new RangeError(`A delay is ${fault.delaySeconds} seconds, expected a whole number from 1 on.`);
  }
};
