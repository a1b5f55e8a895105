// Owns the command line's values: raw texts of options become settings once, here. A refusal names the option and what it takes.
import {
  explainMatch,
  type FeedId,
  matchStreams,
  type NetworkType,
  networkTypes,
  oraclesMax,
} from '@sealpost/protocol';
import { workersMax } from './history.ts';
import { networkProfiles } from './network.ts';
import type { Gap, Late } from './schedule.ts';
import { observationMax, type SimulationOptions, type Span } from './simulation.ts';
import { createStreams, type SimulatedStream } from './streams.ts';

/** An option that cannot be used as given. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Options as they stand on the command line; absent ones are undefined. */
export type RawOptions = {
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

/** What a run is to do. */
export type Settings =
  | { readonly mode: 'live'; readonly simulation: SimulationOptions }
  | {
      readonly mode: 'span';
      readonly simulation: SimulationOptions;
      readonly span: Span;
      readonly out: string;
      readonly workers: number | undefined;
      readonly json: boolean;
    };

const refuse = (option: string, raw: string, expected: string): UsageError =>
  new UsageError(`${option} has the value "${raw}", expected ${expected}.`);

/** Reads every option; relative times count from `now`, in Unix seconds. */
export const parseSettings = (raw: RawOptions, now: number): Settings => {
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
      if (raw[option] !== undefined) throw new UsageError(`--${option} belongs to a span and has no use with --live.`);
    }
    return { mode: 'live', simulation };
  }
  if (raw.out === undefined) throw new UsageError('--out is missing, expected the directory to write to (or --live).');
  const workers = raw.workers === undefined ? undefined : parseCount('--workers', raw.workers, 0, workersMax);
  return { mode: 'span', simulation, span: parseSpan(raw, now), out: raw.out, workers, json: raw.json ?? false };
};

const parseSpan = (raw: RawOptions, now: number): Span => {
  if (raw.from === undefined) throw new UsageError(`--from is missing, expected ${timeForms}.`);
  const from = parseTime('--from', raw.from, now);
  const to = parseTime('--to', raw.to ?? 'now', now);
  if (from > to)
    throw new UsageError(`--from is ${from} and --to is ${to}, expected a --to that is not before --from.`);
  return { from, to };
};

const timeForms =
  'Unix seconds, an RFC 3339 date such as 2025-01-31T12:00:00Z, now, or a relative time such as -1h or +30s';
const unitSeconds: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };
const datePattern = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})$/i;

/** Reads a moment as whole Unix seconds. */
export const parseTime = (option: string, raw: string, now: number): number => {
  const seconds = toSeconds(raw, now);
  if (seconds >= 0 && seconds <= observationMax) return seconds;
  throw refuse(option, raw, timeForms);
};

// NaN when the text is none of the forms.
const toSeconds = (raw: string, now: number): number => {
  if (raw === 'now') return now;
  if (/^[0-9]+$/.test(raw)) return Number(raw);
  const [, sign, count, unit] = /^([+-])([0-9]+)([smhd])$/.exec(raw) ?? [];
  if (unit !== undefined) return now + Number(`${sign}${count}`) * (unitSeconds[unit] ?? Number.NaN);
  return datePattern.test(raw) ? Math.floor(Date.parse(raw) / 1_000) : Number.NaN;
};

const parseNetworkType = (raw: string): NetworkType => {
  const networkType = networkTypes.find((known) => known === raw);
  if (networkType === undefined) throw refuse('--network', raw, networkTypes.join(' or '));
  return networkType;
};

const parseCount = (option: string, raw: string, min: number, max: number): number => {
  const count = /^[0-9]{1,9}$/.test(raw) ? Number(raw) : Number.NaN;
  if (count >= min && count <= max) return count;
  throw refuse(option, raw, `a whole number from ${min} to ${max}`);
};

const parseSize = (raw: RawOptions, networkType: NetworkType): { n: number; f: number } => {
  const profile = networkProfiles[networkType];
  const n = raw.oracles === undefined ? profile.n : parseCount('--oracles', raw.oracles, 1, oraclesMax);
  const faultyMax = Math.ceil(n / 3) - 1; // n > 3f
  if (raw.faulty === undefined) return { n, f: Math.min(profile.f, faultyMax) };
  return { n, f: parseCount('--faulty', raw.faulty, 0, faultyMax) };
};

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
  throw new UsageError(`${option}: ${explainMatch(raw, match)}${advice}`);
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

const delayMaxSeconds = 30 * 86_400; // later than that, a report has expired

const parseFault = (
  option: string,
  [feed, from, to]: readonly [string, string, string],
  streams: readonly SimulatedStream[],
  now: number,
): Gap => {
  const fault = {
    feedId: parseStream(option, feed, streams),
    from: parseTime(option, from, now),
    to: parseTime(option, to, now),
  };
  if (fault.from > fault.to) throw refuse(option, `${from},${to}`, 'a TO that is not before FROM');
  return fault;
};
