// What every schedule is: actions at moments, chosen by a seed before it runs, and invariants. A failing one is run again with fewer actions, and with
// its steps printed.
import { createRandom, type Random } from '../support/random.ts';
import { createExecutor, type Executor } from './executor.ts';

/** Something that happens at a moment: work, or a fault. */
export type Action<World> = {
  readonly atMs: number;
  readonly what: string;
  readonly isFault?: boolean;
  readonly act: (world: World) => void;
};

/** An invariant that did not hold. */
export class Violation extends Error {
  readonly invariant: string;

  constructor(invariant: string, detail: string) {
    super(`${invariant}: ${detail}`);
    this.invariant = invariant;
  }
}

export type Scene = {
  readonly executor: Executor;
  /** For what the network and the database do. */
  readonly random: Random;
  readonly note: (step: string) => void;
};

/** Puts the actions in the queue; returns when the last one occurs, 0 without any. */
export type Begin<World> = (world: World) => number;

/** A protocol: how its schedules are chosen, and what runs them. */
export type Protocol<World, Variant> = {
  readonly plan: (random: Random) => readonly Action<World>[];
  /** Runs to the end, and throws a Violation where an invariant does not hold. */
  readonly run: (scene: Scene, variant: Variant, random: Random, begin: Begin<World>) => Promise<Outcome>;
};

/** What happened, by name: a schedule in which nothing happens proves nothing. */
export type Outcome = Readonly<Record<string, number>>;

export type Ran = {
  readonly violation: Violation | undefined;
  readonly steps: readonly string[];
  readonly outcome: Outcome;
};

export type RunOptions = {
  readonly seed: number;
  /** Actions that are left out, by their places. */
  readonly omitted?: ReadonlySet<number>;
  readonly hasSteps?: boolean;
  readonly hasFaults?: boolean;
  /** Another moment for each action. */
  readonly when?: (atMs: number) => number;
};

const streamsOf = (seed: number): readonly [Random, Random, Random] => [
  createRandom(seed),
  createRandom(seed ^ 0x5bd1e995),
  createRandom(seed ^ 0x1b873593),
];

export const runSchedule = async <World, Variant>(
  { plan, run }: Protocol<World, Variant>,
  variant: Variant,
  use: (executor: Executor) => void,
  { seed, omitted, hasSteps = false, hasFaults = true, when = (atMs) => atMs }: RunOptions,
): Promise<Ran> => {
  const [forPlan, forWorld, random] = streamsOf(seed);
  const executor = createExecutor();
  use(executor);
  const steps: string[] = [];
  const note = (step: string): void => {
    if (hasSteps) steps.push(`${executor.nowMs().toFixed(1).padStart(8)} ms  ${step}`);
  };
  const actions = plan(forPlan);
  const begin = (world: World): number => {
    let lastMs = 0;
    for (const [i, { atMs: plannedMs, what, isFault = false, act }] of actions.entries()) {
      if (omitted?.has(i) || (isFault && !hasFaults)) continue;
      const atMs = when(plannedMs);
      lastMs = Math.max(lastMs, atMs, 1);
      executor.after(atMs, () => {
        note(what);
        act(world);
      });
    }
    return lastMs;
  };
  try {
    const outcome = await run({ executor, random, note }, variant, forWorld, begin);
    return { violation: undefined, steps, outcome };
  } catch (error) {
    if (!(error instanceof Violation)) throw error;
    return { violation: error, steps, outcome: {} };
  }
};

/** Leaves out actions one by one, as long as the same invariant fails. */
export const shrink = async <World, Variant>(
  protocol: Protocol<World, Variant>,
  variant: Variant,
  use: (executor: Executor) => void,
  seed: number,
): Promise<Ran> => {
  const omitted = new Set<number>();
  const runWithout = (hasSteps: boolean) => runSchedule(protocol, variant, use, { seed, omitted, hasSteps });
  const { violation } = await runWithout(false);
  const count = protocol.plan(streamsOf(seed)[0]).length;
  for (let i = 0; i < count; i++) {
    omitted.add(i);
    const again = await runWithout(false);
    if (again.violation?.invariant !== violation?.invariant) omitted.delete(i);
  }
  return runWithout(true);
};
