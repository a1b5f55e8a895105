// Parses the options of `sealpost simulate`.
import {
  daySeconds,
  explainMatch,
  type FeedId,
  matchStreams,
  type NetworkType,
  networkTypes,
  oraclesMax,
} from '@sealpost/protocol';
import {
  createStreams,
  type Gap,
  type Late,
  networkProfiles,
  observationMax,
  type SimulatedStream,
  type SimulationOptions,
  type TimeRange,
  workersMax,
} from '@sealpost/simulator';
import { parseCount } from '../../command-options.ts';
import { type CommandError, usageError } from '../../failure.ts';
import { formatSecond } from '../../formats.ts';
import { parseSpan, parseTime, timeForms } from '../../time-arguments.ts';

/** Options as given; absent ones are undefined. */
export type SimulateOptions = {
  readonly from?: string;
  readonly to?: string;
  readonly out?: string;
  readonly seed: string;
  readonly network: string;
  readonly oracles?: string;
  readonly faulty?: string;
  readonly streams?: string;
  readonly gap?: readonly string[];
  readonly late?: readonly string[];
  readonly workers?: string;
  readonly json?: true;
  readonly live?: true;
};

/** A parsed run: reports of a span, or live ones. */
export type SimulateSettings =
  | { readonly mode: 'live'; readonly simulation: SimulationOptions }
  | {
      readonly mode: 'span';
      readonly simulation: SimulationOptions;
      readonly span: TimeRange;
      readonly out: string;
      readonly workers: number | undefined;
      readonly json: boolean;
    };

const refuse = (option: string, raw: string, expected: string): CommandError =>
  usageError(`${option} has the value "${raw}", expected ${expected}.`);

/** Reads every option; relative times count from `now`, in Unix seconds. */
export function parseSimulateOptions(raw: SimulateOptions, now: number): SimulateSettings {
  const networkType = parseNetworkType(raw.network);
  const streams = parseStreams(raw.streams, createStreams(networkType));
  const simulation = {
    seed: raw.seed,
    networkType,
    ...parseSize(raw, networkType),
    feedIds: streams.map(({ stream }) => stream.feedId),
    gaps: (raw.gap ?? []).map((text) => parseGap(text, streams, now)),
    late: (raw.late ?? []).map((text) => parseLate(text, streams, now)),
  };
  if (raw.live) {
    for (const option of ['from', 'to', 'out', 'workers', 'json'] as const) {
      if (raw[option] !== undefined) throw usageError(`--${option} cannot be combined with --live.`);
    }
    return { mode: 'live', simulation };
  }
  if (raw.out === undefined) throw usageError('--out is missing, expected the directory to write to (or --live).');
  const workers = raw.workers === undefined ? undefined : parseCount('--workers', raw.workers, 0, workersMax);
  return { mode: 'span', simulation, span: parseHistorySpan(raw, now), out: raw.out, workers, json: raw.json ?? false };
}

const parseHistorySpan = ({ from, to = 'now' }: SimulateOptions, now: number): TimeRange => {
  if (from === undefined) throw usageError(`--from is missing, expected ${timeForms}.`);
  const span = parseSpan({ from, to }, { from: now, to: now }, now);
  if (span.to > observationMax) throw refuse('--to', to, `a time up to ${formatSecond(observationMax)}`);
  return span;
};

/** A time whose reports expire within the range of timestamps. */
const parseObservation = (option: string, raw: string, now: number): number => {
  const seconds = parseTime(option, raw, now);
  if (seconds > observationMax) throw refuse(option, raw, `a time up to ${formatSecond(observationMax)}`);
  return seconds;
};

const parseNetworkType = (raw: string): NetworkType => {
  const networkType = networkTypes.find((known) => known === raw);
  if (networkType === undefined) throw refuse('--network', raw, networkTypes.join(' or '));
  return networkType;
};

/** Oracles of the network, and how many of them may fail. */
export function parseSize(
  raw: { readonly oracles?: unknown; readonly faulty?: unknown },
  networkType: NetworkType,
): { n: number; f: number } {
  const profile = networkProfiles[networkType];
  const n = raw.oracles === undefined ? profile.n : parseCount('--oracles', String(raw.oracles), 1, oraclesMax);
  const faultyMax = Math.ceil(n / 3) - 1; // n > 3f
  if (raw.faulty === undefined) return { n, f: Math.min(profile.f, faultyMax) };
  return { n, f: parseCount('--faulty', String(raw.faulty), 0, faultyMax) };
}

const parseStreams = (raw: string | undefined, known: readonly SimulatedStream[]): readonly SimulatedStream[] => {
  if (raw === undefined) return known;
  const feedIds = raw.split(',').map((text) => parseStream('--streams', text, known));
  return known.filter(({ stream }) => feedIds.includes(stream.feedId));
};

const parseStream = (option: string, raw: string, known: readonly SimulatedStream[]): FeedId => {
  const match = matchStreams(
    raw,
    known.map(({ stream }) => stream),
  );
  if (match.found === 'one') return match.stream.feedId;
  const examples = known.slice(0, 3).map(({ stream }) => stream.name);
  const advice = match.found === 'none' && match.near.length === 0 ? ` Such as ${examples.join(', ')}.` : '';
  throw usageError(`${option}: ${explainMatch(raw, match)}${advice}`);
};

const parseGap = (raw: string, streams: readonly SimulatedStream[], now: number): Gap => {
  const [feed, from, to, ...more] = raw.split(',');
  if (feed === undefined || from === undefined || to === undefined || more.length > 0) {
    throw refuse('--gap', raw, 'FEED,FROM,TO');
  }
  return parseFault('--gap', [feed, from, to], streams, now);
};

const parseLate = (raw: string, streams: readonly SimulatedStream[], now: number): Late => {
  const [feed, from, to, delay, ...more] = raw.split(',');
  if (feed === undefined || from === undefined || to === undefined || delay === undefined || more.length > 0) {
    throw refuse('--late', raw, 'FEED,FROM,TO,DELAY');
  }
  const delaySeconds = parseCount('--late', delay, 1, delayMaxSeconds);
  return { ...parseFault('--late', [feed, from, to], streams, now), delaySeconds };
};

const delayMaxSeconds = 30 * daySeconds; // later than that, a report has expired

const parseFault = (
  option: string,
  [feed, from, to]: readonly [string, string, string],
  streams: readonly SimulatedStream[],
  now: number,
): Gap => {
  const fault = {
    feedId: parseStream(option, feed, streams),
    from: parseObservation(option, from, now),
    to: parseObservation(option, to, now),
  };
  if (fault.from > fault.to) throw refuse(option, `${from},${to}`, 'a TO that is not before FROM');
  return fault;
};
