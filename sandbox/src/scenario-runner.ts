// Directs a running sandbox: events of its scenario and those that are set while it runs, what there is to show, and the record of it all as a scenario.
import type { ReportJson, Stream } from '@sealpost/protocol';
import { anySignal } from '@sealpost/server/runtime/deadline';
import type { StreamSpec } from '@sealpost/simulator';
import type { SandboxClock } from './clock.ts';
import { checkFault, type ListedFault } from './faults/decisions.ts';
import type { Faults } from './faults/faults.ts';
import { FaultError } from './faults/parse.ts';
import { type Feed, type FeedCounts, startSandboxFeed } from './feed.ts';
import type { SandboxSource } from './network.ts';
import { SandboxError } from './push/errors.ts';
import { createPushes, type PushAct, pushesBefore } from './push/outcomes.ts';
import { createEventRecord, type EventRecord, type RecordedEvent, shownMax } from './record.ts';
import { compileEvent, type ScenarioAct, secondOfEvent } from './scenario/compile.ts';
import { durationSeconds, type ScenarioEvent } from './scenario/event-table.ts';
import { type Scenario, ScenarioError } from './scenario/parse.ts';

/** What a scenario runner needs of the faults. */
export type FaultControls = Pick<Faults, 'add' | 'remove' | 'clear' | 'mark' | 'list' | 'requests'>;

export type ScenarioRunnerParts = {
  readonly clock: SandboxClock;
  readonly source: SandboxSource;
  readonly faults: FaultControls;
  readonly submit: Parameters<typeof startSandboxFeed>[0]['submit'];
  /** Registers what rotations and decommissioning change; everything else is done here. */
  readonly administer: (act: Extract<ScenarioAct, { kind: 'rotate' | 'announce' | 'decommission' }>) => Promise<void>;
  /** Signs a report and has the node serve it. */
  readonly push: (act: PushAct) => Promise<ReportJson>;
  readonly seed: string;
  readonly startSecond: number;
  readonly past: string;
  readonly speed: number;
  /** Undefined for replayed reports, whose prices are what they were. */
  readonly specs: readonly StreamSpec[] | undefined;
  readonly streams: readonly Stream[];
  readonly reportsPerSecond: number;
  readonly scenario: Scenario;
  /** What is done besides the scenario, in order: a series of prices. */
  readonly series: readonly ScenarioAct[];
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

/** An event with the time at which it happens, and the report that it pushed. */
export type TimedEvent = ScenarioEvent & { readonly time: string; readonly report?: ReportJson };

export type ScenarioRunner = {
  readonly state: () => SandboxState;
  /**
   * Applies events; without `at` they are at once, which for reports is the next second. If one of them cannot be, none is applied. Time moves on to the
   * seconds of pushed reports.
   */
  readonly set: (events: readonly ScenarioEvent[]) => Promise<readonly TimedEvent[]>;
  /** Removes a fault, as an event would; false when there is no such fault. */
  readonly removeFault: (id: string) => Promise<boolean>;
  /** The last requests to the public API, oldest first. */
  readonly requests: Faults['requests'];
  /** A scenario that gives the same bytes. */
  readonly record: () => Record<string, unknown>;
  readonly failed: Promise<never>;
  readonly stop: () => Promise<void>;
};

/** A step is answered after this long, done or not. */
const stepWaitMs = 25_000;

const isoOf = (second: number): string => new Date(second * 1_000).toISOString().replace('.000', '');

/** What is shown of an act that could not be done. Throws an error that is not about a fault or a pushed report. */
export function problemOf({ second }: ScenarioAct, error: unknown): string {
  if (!(error instanceof FaultError || error instanceof SandboxError)) throw error;
  return `${isoOf(second)}: ${error.message}`;
}

/** Starts to direct: the events of the scenario are scheduled, and the feed runs. */
export async function startScenarioRunner(parts: ScenarioRunnerParts): Promise<ScenarioRunner> {
  const { clock, source, faults } = parts;
  let anchor = { timeMs: clock.nowMs(), realMs: parts.monotonicMs() };
  const problems: string[] = [];
  const pushes = createPushes();
  let steps = new AbortController();
  const setClock = (act: ClockAct): void => {
    if (act.kind === 'speed') clock.setSpeed(act.speed);
    else {
      clock.pause();
      steps.abort(); // who waits for a step waits no longer
      steps = new AbortController();
    }
    anchor = { timeMs: clock.nowMs(), realMs: parts.monotonicMs() };
  };
  const perform = async (act: ScenarioAct): Promise<void> => {
    if (isFaultAct(act)) setFaults(faults, act, act.second * 1_000);
    else if (isClockAct(act)) setClock(act);
    else if (act.kind === 'push') await pushes.settle(act, parts.push(act));
    else await parts.administer(act);
  };
  const compiled = compileScenario(parts);
  const record = createEventRecord(compiled);
  // A fault whose name is taken by then is no reason to stop.
  const performLater = (act: ScenarioAct): Promise<void> =>
    perform(act).catch((error: unknown) => void problems.push(problemOf(act, error)));
  const acts = [...compiled.flatMap((one) => one.acts), ...parts.series];
  // Whoever starts the sandbox lets time run afterwards: a pause at the start has to wait for that.
  const isFirst = ({ kind, second }: ScenarioAct): boolean => second <= parts.startSecond && kind !== 'pause';
  for (const act of acts.filter(isFirst)) await performLater(act);
  const feed = startSandboxFeed({ ...parts, perform: performLater });
  for (const act of acts) if (!isFirst(act)) feed.schedule(act);
  const set: ScenarioRunner['set'] = async (events) => {
    record.requireRoom(events);
    checkSteps(events);
    const next = Math.max(feed.nextSecond(), Math.floor(clock.nowMs() / 1_000) + 1);
    const planned = planAll(parts, events, next);
    // Nothing awaits from here on until everything is scheduled: what was asked for before has earlier seconds.
    setFaultsNow(faults, planned);
    const added = source.add(planned.flatMap(({ effects }) => effects));
    for (const { event, acts, isNow } of planned) {
      for (const act of acts)
        if (!isNow || !(isFaultAct(act) || isClockAct(act))) feed.schedule(act);
        else if (isClockAct(act)) setClock(act);
      if (event.type === 'resume') clock.resume();
    }
    record.add(planned);
    const reports = pushes.waitFor(planned.filter(({ isNow }) => isNow).flatMap(({ acts }) => acts));
    await added;
    for (const { event } of planned) if (event.type === 'step') await step(clock, feed, event.by, steps.signal);
    if (reports.second > 0)
      await stepBy(clock, feed, Math.max(0, reports.second * 1_000 - clock.nowMs()), steps.signal);
    return planned.map((one) => ({ ...timedEvent(one), ...reports.of(one.acts, one.path) }));
  };
  return {
    state: () => ({ ...stateOf(parts, record, feed, anchor), problems: problems.slice(-shownMax) }),
    set,
    removeFault: async (id) => {
      const isSet = faults.list().some((fault) => fault.id === id);
      if (isSet) await set([{ type: 'remove', id }]);
      return isSet;
    },
    requests: faults.requests,
    record: () => recordOf(parts, record.all()),
    failed: feed.failed,
    stop: feed.stop,
  };
}

const timedEvent = ({ event, second }: RecordedEvent): TimedEvent => ({ ...event, time: isoOf(second) });

/** The events of a scenario with what they do. Throws where one cannot be, such as a fault of a stream that there is not. */
export function compileScenario({
  scenario,
  startSecond,
  streams,
  specs,
}: Pick<ScenarioRunnerParts, 'scenario' | 'startSecond' | 'streams' | 'specs'>) {
  const firstIds = new Set<string>();
  return scenario.events.map((event, i) => {
    const path = `events[${i}]`;
    const second = secondOfEvent(event, startSecond, path);
    const { effects, acts } = compileEvent(event, second, streams, path);
    checkReplayed(specs, event, path);
    checkFaults(acts, streams, path);
    // Later, the fault with this ID may have been removed.
    for (const act of acts.filter(() => second === startSecond)) {
      if (act.kind === 'clearFaults') firstIds.clear();
      if (act.kind === 'removeFault') firstIds.delete(act.id);
      if (act.kind !== 'fault' || act.fault.id === undefined) continue;
      if (firstIds.has(act.fault.id))
        throw new ScenarioError(`${path}.fault.id`, `is "${act.fault.id}", expected one that no other fault has.`);
      firstIds.add(act.fault.id);
    }
    return { event, second, effects, acts };
  });
}

const simulatedOnly: readonly string[] = ['level', 'jump', 'drift', 'volatility', 'crash', 'depeg', 'freeze', 'market'];

const checkReplayed = (specs: ScenarioRunnerParts['specs'], event: ScenarioEvent, path: string): void => {
  const { type } = event;
  if (specs === undefined && type === 'outage' && event.recovery === 'backfill')
    throw new ScenarioError(path === '' ? 'recovery' : `${path}.recovery`, 'is "backfill", which a replay cannot do.');
  if (specs === undefined && simulatedOnly.includes(type))
    throw new ScenarioError(
      path === '' ? 'type' : `${path}.type`,
      `is "${type}", which replayed reports cannot have: their prices are what they were.`,
    );
};

const planAll = (parts: ScenarioRunnerParts, events: readonly ScenarioEvent[], next: number) =>
  events.map((event, i) => plan(parts, event, next + pushesBefore(events, i), events.length === 1 ? '' : `[${i}]`));

const plan = (
  { streams, startSecond, specs }: ScenarioRunnerParts,
  event: ScenarioEvent,
  next: number,
  path: string,
) => {
  const second = event.at === undefined ? next : secondOfEvent(event, startSecond, path);
  if (second < next)
    throw new ScenarioError(`${path}${path === '' ? '' : '.'}at`, `is ${event.at}, expected ${isoOf(next)} or later.`);
  checkReplayed(specs, event, path);
  const compiled = compileEvent(event, second, streams, path);
  checkFaults(compiled.acts, streams, path);
  return { event, second, path, isNow: event.at === undefined, ...compiled };
};

const checkFaults = (acts: readonly ScenarioAct[], streams: readonly Stream[], path: string): void => {
  for (const act of acts)
    if (act.kind === 'fault') namingFault(act, path, () => checkFault(act.fault, act.second * 1_000, streams));
};

// Acts that do not concern reports need not wait for the next second, which may never come while time is paused.
type FaultAct = Extract<ScenarioAct, { kind: 'fault' | 'removeFault' | 'clearFaults' }>;
type ClockAct = Extract<ScenarioAct, { kind: 'speed' | 'pause' }>;
export const isFaultAct = (act: ScenarioAct): act is FaultAct =>
  ['fault', 'removeFault', 'clearFaults'].includes(act.kind);
const isClockAct = (act: ScenarioAct): act is ClockAct => act.kind === 'speed' || act.kind === 'pause';

/** Sets, removes or clears faults. Throws a FaultError where that cannot be. */
export function setFaults(
  faults: Pick<FaultControls, 'add' | 'remove' | 'clear'>,
  act: FaultAct,
  addedMs?: number,
): void {
  if (act.kind === 'fault') faults.add(act.fault, addedMs);
  else if (act.kind === 'clearFaults') faults.clear();
  else if (!faults.remove(act.id))
    throw new FaultError('id', `id is "${act.id}", expected the ID of a fault that is set.`);
}

/** Sets and clears the faults of a list, or none where one of them cannot be set. */
const setFaultsNow = (faults: FaultControls, planned: readonly ReturnType<typeof plan>[]): void => {
  const undo = faults.mark();
  try {
    for (const { acts, path } of planned.filter(({ isNow }) => isNow))
      for (const act of acts.filter(isFaultAct)) namingFault(act, path, () => setFaults(faults, act));
  } catch (error) {
    undo();
    throw error;
  }
};

/** A step waits: what is after it in a list would be late. */
const checkSteps = (events: readonly ScenarioEvent[]): void => {
  const i = events.findIndex(({ type }) => type === 'step');
  if (i !== -1 && events.length > 1)
    throw new ScenarioError(`[${i}].type`, 'is "step", which cannot be in a list with other events. Send it alone.');
};

/** Advances time, and resolves when the reports are there. */
const step = (clock: SandboxClock, feed: Feed, by: string, ended: AbortSignal): Promise<void> =>
  stepBy(clock, feed, (durationSeconds(by) ?? 0) * 1_000, ended);

const stepBy = async (clock: SandboxClock, feed: Feed, ms: number, ended: AbortSignal): Promise<void> => {
  const target = clock.step(ms);
  const signal = anySignal([ended, AbortSignal.timeout(stepWaitMs)]);
  await clock.waitUntil(target, signal);
  await feed.storedUpTo(Math.floor(target / 1_000), signal);
};

const stateOf = (
  { clock, seed, startSecond, streams, scenario, faults, monotonicMs }: ScenarioRunnerParts,
  { own, lastSet }: EventRecord,
  feed: Pick<Feed, 'counts'>,
  anchor: { readonly timeMs: number; readonly realMs: number },
): Omit<SandboxState, 'problems'> => {
  const { nowMs, speed, paused, behindMs } = clock.state();
  const upcoming = own.filter(({ second }) => second * 1_000 > nowMs).sort((a, b) => a.second - b.second);
  const [next] = upcoming;
  const realSeconds = Math.max(1, monotonicMs() - anchor.realMs) / 1_000;
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
      next: next === undefined ? null : timedEvent(next),
    },
    set: lastSet().map(timedEvent),
    reports: { ...feed.counts() },
    faults: faults.list(),
  };
};

const namingFault = ({ kind }: FaultAct, path: string, work: () => void): void => {
  try {
    work();
  } catch (error) {
    if (!(error instanceof FaultError)) throw error;
    const field = kind === 'fault' ? `fault.${error.field}` : error.field;
    throw new ScenarioError(`${path}${path === '' ? '' : '.'}${field}`, error.message);
  }
};

const round = (value: number): number => Math.round(value * 10) / 10;

const recordOf = (
  { seed, startSecond, past, speed, specs, scenario }: ScenarioRunnerParts,
  recorded: readonly RecordedEvent[],
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
