// One simulated network: streams, schedule and oracles. Its options are plain values, so that worker threads can build the same one.
import {
  encodeReportBody,
  type FeedId,
  type ReportBody,
  type ReportJson,
  secondsMax,
  toReportJson,
  windowOf,
} from '@sealpost/protocol';
import { createMarket } from './market/quotes.ts';
import { createNetwork, type Network, type NetworkOptions } from './network.ts';
import { createFeeTokens, createReportBody, expirySeconds } from './report-bodies.ts';
import { createSchedule, type Faults } from './schedule.ts';
import { createStreams, type SimulatedStream } from './streams.ts';

export type SimulationOptions = NetworkOptions &
  Faults & {
    /** Only these streams; all by default. */
    readonly feedIds?: readonly FeedId[] | undefined;
    /** Streams with more reports have one per this many seconds, a multiple of their intervals; its window is as long. */
    readonly everySeconds?: number | undefined;
  };

/** Observation seconds, both ends included. */
export type TimeRange = { readonly from: number; readonly to: number };

/** A signed report, and the second of its delivery. */
export type DeliveredReport = { readonly deliveredAt: number; readonly report: ReportJson };

export type Simulation = {
  readonly network: Network;
  readonly streams: readonly SimulatedStream[];
  /** The longest delay of a report. */
  readonly delayMaxSeconds: number;
  /** Signs the deliveries of a second, in order; skips observations outside of the time range. */
  readonly deliverAt: (second: number, observed?: TimeRange) => Generator<DeliveredReport>;
};

/** The latest observation second whose expiry fits into a report. */
export const observationMax = secondsMax - expirySeconds;

const everySecond: TimeRange = { from: 0, to: observationMax };
const networkStartedAt = 1_704_067_200; // 2024-01-01, before the first stream; rounds are counted from here

/** One round per second for all streams; before the network started, the second itself. */
export const roundOf = ({ observationsTimestamp }: Pick<ReportBody, 'observationsTimestamp'>): number =>
  observationsTimestamp < networkStartedAt ? observationsTimestamp : observationsTimestamp - networkStartedAt;

/** Builds the network and binds the streams to the seed. */
export async function createSimulation(options: SimulationOptions): Promise<Simulation> {
  const { seed, feedIds, everySeconds = 1 } = options;
  const network = await createNetwork(options);
  const streams = selectStreams(createStreams(network.networkType), feedIds).map(atIntervalOf(everySeconds));
  const markets = streams.map((simulated) => createMarket(seed, simulated));
  const { deliveriesAt, delayMaxSeconds } = createSchedule(markets, options);
  const feeTokens = createFeeTokens(seed);
  const signReport = (body: ReportBody): ReportJson => {
    return toReportJson(body.feedId, windowOf(body), network.sign(encodeReportBody(body), roundOf(body)));
  };
  return {
    network,
    streams,
    delayMaxSeconds,
    *deliverAt(second, { from, to } = everySecond) {
      for (const { simulated, observationsTimestamp, deliveredAt } of deliveriesAt(second)) {
        if (observationsTimestamp < from || observationsTimestamp > to) continue;
        yield { deliveredAt, report: signReport(createReportBody(simulated, feeTokens, observationsTimestamp)) };
      }
    },
  };
}

/** Keeps every so many observations of a stream, the last ones before multiples of `everySeconds`. */
const atIntervalOf =
  (everySeconds: number) =>
  (simulated: SimulatedStream): SimulatedStream => {
    const { intervalSeconds, phaseSeconds } = simulated;
    if (intervalSeconds >= everySeconds) return simulated;
    if (everySeconds % intervalSeconds !== 0)
      throw new RangeError(
        `everySeconds is ${everySeconds}, which is no multiple of an interval of ${intervalSeconds}.`,
      );
    return { ...simulated, intervalSeconds: everySeconds, phaseSeconds: everySeconds - intervalSeconds + phaseSeconds };
  };

const selectStreams = (
  streams: readonly SimulatedStream[],
  feedIds: readonly FeedId[] | undefined,
): readonly SimulatedStream[] => {
  if (feedIds === undefined) return streams;
  const unknown = feedIds.find((feedId) => !streams.some(({ stream }) => stream.feedId === feedId));
  if (unknown !== undefined) throw new RangeError(`${unknown} is not simulated on this network.`);
  return streams.filter(({ stream }) => feedIds.includes(stream.feedId));
};
