// What a sandbox is to be, from flags and a scenario file. Flags take precedence.
import { parseCatalog, type Stream } from '@sealpost/protocol';
import type { SandboxAccounts } from '@sealpost/sandbox/accounts';
import { speedBounds } from '@sealpost/sandbox/clock';
import { FaultError, parseFault } from '@sealpost/sandbox/faults/parse';
import { durationSeconds } from '@sealpost/sandbox/scenario/event-table';
import {
  parseScenario,
  parseStreams,
  type Scenario,
  ScenarioError,
  startField,
} from '@sealpost/sandbox/scenario/parse';
import { allSpecs, defaultSpecs, type StreamSpec } from '@sealpost/simulator';
import { collected, type RawOptions, readJsonFile } from '../../command-options.ts';
import { parseServerUrl } from '../../credentials.ts';
import { asUsage, usageError } from '../../failure.ts';
import { parseTime } from '../../time-arguments.ts';
import { parseSize } from '../simulate/arguments.ts';
import { type PricesPlan, readPrices } from './prices.ts';

export type SandboxPlan = {
  readonly seed: string;
  /** Of the oracle network: n oracles, of which f may fail. */
  readonly size: { readonly n: number; readonly f: number };
  /** Undefined starts at the present. */
  readonly startSecond: number | undefined;
  readonly speed: number;
  readonly isPaused: boolean;
  readonly past: string;
  readonly specs: readonly StreamSpec[];
  /** A file of reports to replay instead of simulating some. */
  readonly replay: ReplayPlan | undefined;
  readonly prices: PricesPlan | undefined;
  readonly scenario: Scenario;
  readonly hasChain: boolean;
  /** Further accounts, by name. */
  readonly accounts: SandboxAccounts;
  /** A chain that the user runs. */
  readonly chainUrl: string | undefined;
};

export type ReplayPlan = {
  readonly file: string;
  /** At the times they had, or from the start of the sandbox on. */
  readonly isOriginal: boolean;
  /** Names of the streams. */
  readonly catalog: readonly Stream[];
};

export const planDefaults = { seed: 'sandbox', past: '5m', listen: '127.0.0.1:7411', opsPort: 7412 } as const;

/** Reads flags and scenario. Errors name the flag, or the file and the field. */
export async function readPlan(options: RawOptions, nowSeconds: number): Promise<SandboxPlan> {
  const file = typeof options.scenario === 'string' ? options.scenario : undefined;
  const scenario = file === undefined ? { events: [] } : inFile(file, parseScenario, await readJsonFile(file));
  const prices = typeof options.prices === 'string' ? await readPrices(options.prices) : undefined;
  const faults = (collected(options.fault) ?? []).map(parseFaultFlag);
  const size = parseSize(options, 'testnet');
  if (options.chain !== undefined && size.f === 0)
    throw usageError('--chain needs --faulty 1 or more, and so --oracles 4 or more: the contract rejects 0.');
  return {
    seed: parseSeed(options.seed) ?? scenario.seed ?? planDefaults.seed,
    size,
    startSecond: parseStart(options.at, nowSeconds) ?? scenario.at ?? prices?.firstSecond,
    speed: parseSpeed(options.speed) ?? scenario.speed ?? 1,
    isPaused: options.paused === true,
    past: parsePast(options.past) ?? scenario.past ?? planDefaults.past,
    specs: parseStreamList(options.streams) ?? scenario.streams ?? prices?.specs ?? defaultSpecs,
    replay: await readReplay(options),
    prices,
    scenario: { ...scenario, events: [...faults, ...scenario.events] },
    accounts: Object.fromEntries((collected(options.account) ?? []).map(parseAccountFlag)),
    hasChain: options.chain !== undefined,
    chainUrl: typeof options.chain === 'string' ? parseServerUrl('--chain', options.chain).href : undefined,
  };
}

const readReplay = async (options: RawOptions): Promise<ReplayPlan | undefined> => {
  const { replay, replayTimes = 'now', catalog, streams, past, prices } = options;
  if (replay === undefined) {
    const flag =
      catalog === undefined ? (options.replayTimes === undefined ? undefined : '--replay-times') : '--catalog';
    if (flag !== undefined) throw usageError(`${flag} is for --replay FILE.`);
    return undefined;
  }
  if (streams !== undefined || past !== undefined || prices !== undefined)
    throw usageError(
      `${streams !== undefined ? '--streams' : past !== undefined ? '--past' : '--prices'} is for simulated reports, not for --replay.`,
    );
  if (replayTimes !== 'now' && replayTimes !== 'original')
    throw usageError(`--replay-times has the value "${replayTimes}", expected now or original.`);
  const file = typeof catalog === 'string' ? catalog : undefined;
  const json = file === undefined ? [] : await readJsonFile(file);
  const named = file === undefined ? [] : asUsage(() => parseCatalog(json, file));
  return { file: String(replay), isOriginal: replayTimes === 'original', catalog: named };
};

/** Reads what a file has; an error names the file. */
const inFile = <T>(file: string, parse: (value: unknown) => T, value: unknown): T => {
  try {
    return parse(value);
  } catch (error) {
    throw error instanceof ScenarioError ? usageError(`${file}: ${error.message}`) : error;
  }
};

const parseSeed = (raw: unknown): string | undefined => {
  if (raw === undefined) return undefined;
  if (/^[^\p{Cc}]{1,200}$/u.test(String(raw))) return String(raw);
  throw usageError('--seed is empty or longer than 200 characters.');
};

const parseStart = (raw: unknown, nowSeconds: number): number | undefined => {
  if (raw === undefined) return undefined;
  const seconds = startField.parse(parseTime('--at', String(raw), nowSeconds));
  if (seconds !== undefined) return seconds;
  throw usageError(`--at has the value "${raw}", expected ${startField.expected}.`);
};

const parseSpeed = (raw: unknown): number | undefined => {
  if (raw === undefined) return undefined;
  const speed = /^\d{1,5}(\.\d{1,6})?$/.test(String(raw)) ? Number(raw) : Number.NaN;
  if (speed >= speedBounds.min && speed <= speedBounds.max) return speed;
  throw usageError(`--speed has the value "${raw}", expected a number from ${speedBounds.min} to ${speedBounds.max}.`);
};

const pastMaxSeconds = 7 * 86_400;

const parsePast = (raw: unknown): string | undefined => {
  if (raw === undefined) return undefined;
  const text = raw === '0' ? '0s' : String(raw);
  const seconds = durationSeconds(text);
  if (seconds !== undefined && seconds <= pastMaxSeconds) return text;
  throw usageError(`--past has the value "${raw}", expected a duration from 0s to 7d such as 10m or 1h.`);
};

const parseStreamList = (raw: unknown): readonly StreamSpec[] | undefined => {
  if (raw === undefined) return undefined;
  if (raw === 'all') return allSpecs();
  const names = String(raw)
    .split(',')
    .map((name) => name.trim());
  try {
    return parseStreams(names, '--streams');
  } catch (error) {
    if (error instanceof ScenarioError) throw usageError(`${error.message} Or use --streams all.`);
    throw error;
  }
};

const parseAccountFlag = (text: string): readonly [string, readonly string[]] => {
  const [, name, list] = /^([^=]+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || list === undefined)
    throw usageError(
      `--account has the value "${text}", expected NAME=STREAMS such as alice=public or bob=ETH/USD,BTC/USD.`,
    );
  return [name, list.split(',').map((grant) => grant.trim())];
};

const parseFaultFlag = (line: string) => {
  try {
    return { type: 'fault', at: '0s', fault: parseFault(line) } as const;
  } catch (error) {
    if (error instanceof FaultError) throw usageError(`--fault ${line}: ${error.message}`);
    throw error;
  }
};
