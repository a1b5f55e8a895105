// The simulated network under a scenario. Reports are a pure function of the second and of the effects that are known, so that the same seed and
// scenario give the same bytes, whoever signs them and how fast.
import {
  compareStreams,
  encodeReportBody,
  type FeedId,
  type ReportJson,
  toReportJson,
  windowOf,
} from '@sealpost/protocol';
import { createMarket, type Market } from '../market/quotes.ts';
import { createNetwork, type Network, type NetworkOptions } from '../network.ts';
import { createFeeTokens, createReportBody } from '../report-bodies.ts';
import { type DeliveredReport, roundOf } from '../simulation.ts';
import type { SimulatedStream } from '../streams.ts';
import {
  type Effect,
  type EndEffect,
  effectsOn,
  isPriceEffect,
  type MarketEffect,
  observedFor,
  type ResumptionEffect,
  type RotationEffect,
  type SilenceEffect,
} from './effects.ts';
import { createSpecStream, type StreamSpec } from './stream-specs.ts';

export type ScenarioOptions = NetworkOptions & {
  readonly streams: readonly StreamSpec[];
  /** The scenario's first second. */
  readonly startSecond: number;
  readonly effects: readonly Effect[];
};

export type ScenarioSimulation = {
  /** In catalog order. */
  readonly streams: readonly SimulatedStream[];
  /** The network that signs what is delivered in a second. */
  readonly networkAt: (second: number) => Network;
  /** Every network so far, in the order of their rotation. */
  readonly networks: () => readonly Network[];
  /** Signs what is delivered in a second: in catalog order, older observations of a stream first. */
  readonly deliverAt: (second: number) => Generator<DeliveredReport>;
  /** Adds effects; those before what was signed already would contradict it. */
  readonly add: (effects: readonly Effect[]) => Promise<void>;
};

/** One stream with what concerns it. */
type Course = {
  readonly market: Market;
  readonly silences: readonly SilenceEffect[];
  readonly endsAt: number;
};

/** The seed of the signer set after so many rotations. */
export const rotatedSeed = (seed: string, rotations: number): string =>
  rotations === 0 ? seed : `${seed} rotation ${rotations}`;

/** Builds the network under a scenario. */
export async function createScenarioSimulation(options: ScenarioOptions): Promise<ScenarioSimulation> {
  const { seed, networkType = 'testnet', startSecond } = options;
  const streams = options.streams
    .map((spec) => createSpecStream(networkType, spec, startSecond))
    .sort((a, b) => compareStreams(a.stream, b.stream));
  const feeTokens = createFeeTokens(seed);
  const networks: Network[] = [];
  let effects: readonly Effect[] = [];
  let rotations: readonly RotationEffect[] = [];
  let courses: readonly Course[] = [];
  const add = async (added: readonly Effect[]): Promise<void> => {
    const all = [...effects, ...added];
    const allRotations = all.filter(isRotation).sort((a, b) => a.from - b.from);
    while (networks.length <= allRotations.length)
      networks.push(await createNetwork({ ...options, seed: rotatedSeed(seed, networks.length) }));
    effects = all;
    rotations = allRotations;
    courses = streams.map((simulated) => createCourse(seed, simulated, all));
  };
  await add(options.effects);
  const networkAt = (second: number): Network =>
    networks[rotations.filter(({ from }) => from <= second).length] as Network; // one more than rotations
  const sign = (market: Market, observed: number, second: number): ReportJson => {
    const body = createReportBody(market, feeTokens, observed);
    return toReportJson(body.feedId, windowOf(body), networkAt(second).sign(encodeReportBody(body), roundOf(body)));
  };
  return {
    streams,
    networkAt,
    networks: () => networks,
    *deliverAt(second) {
      for (const { market, silences, endsAt } of courses) {
        for (const observed of observedFor(silences, second)) {
          if (observed % market.intervalSeconds !== market.phaseSeconds || observed >= endsAt) continue;
          yield { deliveredAt: second, report: sign(market, observed, second) };
        }
      }
    },
    add,
  };
}

const createCourse = (seed: string, simulated: SimulatedStream, effects: readonly Effect[]): Course => {
  const { feedId }: { feedId: FeedId } = simulated.stream;
  return {
    market: createMarket(
      seed,
      simulated,
      effectsOn(effects, feedId, isPriceEffect),
      effectsOn(effects, feedId, isMarket),
    ),
    silences: silencesOf(effectsOn(effects, feedId, isSilenceOrEnd)),
    endsAt: effectsOn(effects, feedId, isEnd)[0]?.from ?? Number.POSITIVE_INFINITY,
  };
};

const silencesOf = (effects: readonly (SilenceEffect | ResumptionEffect)[]): readonly SilenceEffect[] =>
  effects.flatMap((one, index) => {
    if (one.kind === 'resumption') return [];
    const end = effects.find(({ kind }, i) => kind === 'resumption' && i > index)?.from ?? Number.POSITIVE_INFINITY;
    return end > one.from ? [{ ...one, to: Math.min(one.to, end) }] : [];
  });

const isRotation = (effect: Effect): effect is RotationEffect => effect.kind === 'rotation';
const isMarket = (effect: Effect): effect is MarketEffect => effect.kind === 'market';
const isSilenceOrEnd = (effect: Effect): effect is SilenceEffect | ResumptionEffect =>
  effect.kind === 'silence' || effect.kind === 'resumption';
const isEnd = (effect: Effect): effect is EndEffect => effect.kind === 'end';
