// Directs a running sandbox: events of its scenario and those that are set while it runs, what there is to show, and the record of it all as a scenario.
import type { Stream } from '@sealpost/protocol';
import type { StreamSpec } from '@sealpost/simulator';
import type { SandboxClock } from './clock.ts';
import type { ListedFault } from './faults/decisions.ts';
import type { Faults } from './faults/faults.ts';
import { FaultError } from './faults/parse.ts';
import { type Feed, type FeedCounts, startSandboxFeed } from './feed.ts';
import type { SandboxSource } from './network.ts';
import { compileEvent, type ScenarioAct, secondOfEvent } from './scenario/compile.ts';
import { durationSeconds, eventRow, type ScenarioEvent } from './scenario/event-table.ts';
import { type Scenario, ScenarioError } from './scenario/parse.ts';

/** What a director needs of the faults. */
export type FaultControls = Pick<Faults, 'add' | 'remove' | 'clear' | 'list' | 'requests'>;

export type DirectorParts = {
  readonly clock: SandboxClock;
  readonly source: SandboxSource;
  readonly faults: FaultControls;
  readonly submit: Parameters<typeof startSandboxFeed>[0]['submit'];
  /** Registers what rotations and decommissioning change; everything else is done here. */
  readonly administer: (act: Extract<ScenarioAct, { kind: 'rotate' | 'announce' | 'decommission' }>) => Promise<void>;
  readonly seed: string;
  readonly startSecond: number;
  readonly past: string;
  readonly speed: number;
  /** Undefined for replayed reports, whose prices are what they were. */
  readonly specs: readonly StreamSpec[] | undefined;
  readonly streams: readonly Stream[];
  readonly reportsPerSecond: number;
  readonly scenario: Scenario;
  /** Real time that is never set back. */
  readonly monotonicMs: () => number;
};

export type SandboxState = {
  /** Sandbox time. */
  readonly time: string;
  readonly timeMs: number;
  readonly start: string;
  readonly seed: string;
  readonly speed: number;
  /** Sandbox seconds per second since the speed was set, where time waits for reports. */
  readonly actualSpeed: number;
  readonly paused: boolean;
  /** How far time is behind because it waits for reports. */
  readonly behindSeconds: number;
  readonly streams: readonly string[];
  readonly scenario: {
    readonly name: string | null;
    readonly events: number;
    readonly done: number;
    readonly next: TimedEvent | null;
  };
  /** What was set while it ran, newest last, the last 20. */
  readonly set: readonly TimedEvent[];
  readonly reports: FeedCounts;
  readonly faults: readonly ListedFault[];
  /** Events of the scenario that could not happen. */
  readonly problems: readonly string[];
};

/** An event with the time at which it happens. */
export type TimedEvent = ScenarioEvent & { readonly time: string };

export type Director = {
  readonly state: () => SandboxState;
  /**
   * Applies events; without `at` they are at once, which for reports is the next second. If one is malformed, none; a fault whose ID is taken ends
   * the list there.
   */
  readonly set: (events: readonly ScenarioEvent[]) => Promise<readonly TimedEvent[]>;
  readonly removeFault: (id: string) => boolean;
  /** The last requests to the public API, oldest first. */
  readonly requests: Faults['requests'];
  /** A scenario that gives the same bytes. */
  readonly record: () => Record<string, unknown>;
  readonly failed: Promise<never>;
  readonly stop: () => Promise<void>;
};

/** Events that a sandbox records while it runs. */
const recordedMax = 10_000;
const shownMax = 20;
/** A step is answered after this long, done or not. */
const stepWaitMs = 25_000;

const isoOf = (second: number): string => new Date(second * 1_000).toISOString().replace('.000', '');

type Recorded = { readonly event: ScenarioEvent; readonly second: number; readonly isSet: boolean };

/** Starts to direct: the events of the scenario are scheduled, and the feed runs. */
export const startDirector = async (parts: DirectorParts): Promise<Director> => {
  const { clock, source, faults } = parts;
  const recorded: Recorded[] = [];
  let anchor = { timeMs: clock.nowMs(), realMs: parts.monotonicMs() };
  const problems: string[] = [];
  let steps = new AbortController();
  const perform = async (act: ScenarioAct): Promise<void> => {
    if (act.kind === 'fault') faults.add(act.fault);
    else if (act.kind === 'clearFaults') faults.clear();
    else if (act.kind === 'speed') clock.setSpeed(act.speed);
    else if (act.kind === 'pause') {
      clock.pause();
      steps.abort(); // who waits for a step waits no longer
      steps = new AbortController();
    } else await parts.administer(act);
    if (act.kind === 'speed' || act.kind === 'pause') anchor = { timeMs: clock.nowMs(), realMs: parts.monotonicMs() };
  };
  const compiled = compileScenario(parts);
  for (const { event, second } of compiled) recorded.push({ event, second, isSet: false });
  // A fault whose name is taken by then is no reason to stop.
  const performLater = (act: ScenarioAct): Promise<void> =>
    perform(act).catch((error: unknown) => {
      if (!(error instanceof FaultError)) throw error;
      problems.push(`${isoOf(act.second)}: ${error.message}`);
    });
  const feed = startSandboxFeed({ ...parts, perform: performLater });
  for (const { acts } of compiled) for (const act of acts) feed.schedule(act);
  const set: Director['set'] = async (events) => {
    if (recorded.length + events.length > recordedMax)
      throw new ScenarioError('', `This sandbox has ${recordedMax} events. Start another one.`);
    const next = Math.max(feed.nextSecond(), Math.floor(clock.nowMs() / 1_000) + 1);
    const planned = events.map((event, i) => plan(parts, event, next, events.length === 1 ? '' : `[${i}]`));
    // Nothing awaits between here and the request to the thread: what was asked for before has earlier seconds.
    const added = source.add(planned.flatMap(({ effects }) => effects));
    for (const { event, second, acts, isNow } of planned) {
      for (const act of acts)
        if (isNow && isImmediate(act)) await perform(act).catch(asScenarioError);
        else feed.schedule(act);
      await command(clock, feed, event, steps.signal);
      if (eventRow(event.type).runtime === undefined) recorded.push({ event, second, isSet: true });
    }
    await added;
    return planned.map(({ event, second }) => ({ ...event, time: isoOf(second) }));
  };
  return {
    state: () => ({ ...stateOf(parts, recorded, feed, anchor), problems: problems.slice(-shownMax) }),
    set,
    removeFault: faults.remove,
    requests: faults.requests,
    record: () => recordOf(parts, recorded),
    failed: feed.failed,
    stop: feed.stop,
  };
};

/** The events of a scenario with what they do; faults are checked by adding them to none. */
export const compileScenario = ({
  scenario,
  startSecond,
  streams,
  specs,
}: Pick<DirectorParts, 'scenario' | 'startSecond' | 'streams' | 'specs'>) =>
  scenario.events.map((event, i) => {
    const path = `events[${i}]`;
    const second = secondOfEvent(event, startSecond, path);
    const { effects, acts } = compileEvent(event, second, streams, path);
    checkReplayed(specs, event, path);
    return { event, second, effects, acts };
  });

const simulatedOnly: readonly string[] = ['level', 'jump', 'drift', 'volatility', 'crash', 'depeg', 'freeze', 'market'];

const checkReplayed = (specs: DirectorParts['specs'], event: ScenarioEvent, path: string): void => {
  const { type } = event;
  if (specs === undefined && type === 'outage' && event.recovery === 'backfill')
    throw new ScenarioError(path === '' ? 'recovery' : `${path}.recovery`, 'is "backfill", which a replay cannot do.');
  if (specs === undefined && simulatedOnly.includes(type))
    throw new ScenarioError(
      path === '' ? 'type' : `${path}.type`,
      `is "${type}", which replayed reports cannot have: their prices are what they were.`,
    );
};

const plan = ({ streams, startSecond, specs }: DirectorParts, event: ScenarioEvent, next: number, path: string) => {
  const second = event.at === undefined ? next : secondOfEvent(event, startSecond, path);
  if (second < next)
    throw new ScenarioError(`${path}${path === '' ? '' : '.'}at`, `is ${event.at}, expected ${isoOf(next)} or later.`);
  checkReplayed(specs, event, path);
  return { event, second, isNow: event.at === undefined, ...compileEvent(event, second, streams, path) };
};

/** Acts that do not concern reports need not wait for the next second, which may never come while time is paused. */
const isImmediate = ({ kind }: ScenarioAct): boolean => ['fault', 'clearFaults', 'speed', 'pause'].includes(kind);

/** Does what only a running sandbox can be told. */
const command = async (clock: SandboxClock, feed: Feed, event: ScenarioEvent, ended: AbortSignal): Promise<void> => {
  if (event.type === 'resume') clock.resume();
  if (event.type !== 'step') return;
  const target = clock.step((durationSeconds(event.by) ?? 0) * 1_000);
  const signal = AbortSignal.any([ended, AbortSignal.timeout(stepWaitMs)]);
  await clock.waitUntil(target, signal);
  await feed.storedUpTo(Math.floor(target / 1_000), signal);
};

const stateOf = (
  { clock, seed, startSecond, streams, scenario, faults, monotonicMs }: DirectorParts,
  recorded: readonly Recorded[],
  feed: Pick<Feed, 'counts'>,
  anchor: { readonly timeMs: number; readonly realMs: number },
): Omit<SandboxState, 'problems'> => {
  const { nowMs, speed, paused, behindMs } = clock.state();
  const own = recorded.filter(({ isSet }) => !isSet);
  const upcoming = own.filter(({ second }) => second * 1_000 > nowMs).sort((a, b) => a.second - b.second);
  const [next] = upcoming;
  const realSeconds = Math.max(1, monotonicMs() - anchor.realMs) / 1_000;
  const timed = ({ event, second }: Recorded): TimedEvent => ({ ...event, time: isoOf(second) });
  return {
    time: new Date(nowMs).toISOString(),
    timeMs: nowMs,
    start: isoOf(startSecond),
    seed,
    speed,
    actualSpeed: paused ? 0 : behindMs < 2_000 * speed ? speed : round((nowMs - anchor.timeMs) / 1_000 / realSeconds),
    paused,
    behindSeconds: Math.round(behindMs / 1_000),
    streams: streams.map(({ name }) => name),
    scenario: {
      name: scenario.name ?? null,
      events: own.length,
      done: own.length - upcoming.length,
      next: next === undefined ? null : timed(next),
    },
    set: recorded
      .filter(({ isSet }) => isSet)
      .slice(-shownMax)
      .map(timed),
    reports: { ...feed.counts() },
    faults: faults.list(),
  };
};

const asScenarioError = (error: unknown): never => {
  if (error instanceof FaultError) throw new ScenarioError(`fault.${error.field}`, error.message);
  throw error;
};

const round = (value: number): number => Math.round(value * 10) / 10;

const recordOf = (
  { seed, startSecond, past, speed, specs, scenario }: DirectorParts,
  recorded: readonly Recorded[],
): Record<string, unknown> => ({
  ...(scenario.name !== undefined && { name: scenario.name }),
  ...(scenario.about !== undefined && { about: scenario.about }),
  seed,
  at: isoOf(startSecond),
  speed,
  past,
  ...(specs !== undefined && { streams: specs }),
  events: [...recorded]
    .sort((a, b) => a.second - b.second)
    .filter(({ event }) => event.type !== 'pause') // it changes no byte, and would stop who runs the record
    .map(({ event: { at: _, type, ...fields }, second }) => ({ at: `${second - startSecond}s`, type, ...fields })),
});
