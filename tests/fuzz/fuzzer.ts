// The loop: picks an input of the pool, mutates it, runs it, and keeps it if something new happened.

import { createRandom } from '../support/random.ts';
import { minimize } from './minimize.ts';
import { mutate } from './mutate.ts';
import { causeOf, type Finding, type Target } from './target.ts';

export type Fuzzer = {
  /** Runs one input as it is. */
  readonly runOne: (input: Buffer) => Promise<Finding | undefined>;
  /** Runs all inputs to begin with. */
  readonly runPool: () => Promise<readonly Finding[]>;
  /** Runs the next mutation. A cause that was found before is not reported again. */
  readonly next: () => Promise<Finding | undefined>;
  readonly runs: () => number;
  /** Inputs that mutations begin from. */
  readonly pool: readonly Buffer[];
  /** Kinds of outcomes seen, each with the first input that had it. */
  readonly outcomes: ReadonlyMap<string, Buffer>;
};

export type FuzzerOptions = {
  readonly seed: number;
  /** Inputs besides the target's own. */
  readonly corpus: readonly Buffer[];
  /** Called before each run, so that an input that never returns is known. */
  readonly onRun?: (input: Buffer, runs: number) => void;
};

/** Inputs kept at most; what is new after that is run and forgotten. */
const poolMax = 5_000;
/** Outcomes kept at most: a target with one for almost every input would fill the memory, until its process seemed to hang. */
const outcomesMax = 20_000;
/** Inputs between two checks of the target. */
const checkEvery = 256;
const minimizeTriesMax = 1_500;

export const createFuzzer = (target: Target, { seed, corpus, onRun = () => {} }: FuzzerOptions): Fuzzer => {
  const random = createRandom(seed);
  const pool = [...target.seeds, ...corpus];
  const outcomes = new Map<string, Buffer>();
  const causes = new Set<string>();
  let runs = 0;

  /** The cause of a failure; undefined if the invariant holds. */
  const failureOf = async (input: Buffer): Promise<string | undefined> => {
    onRun(input, runs);
    try {
      const outcome = target.run(input);
      const text = typeof outcome === 'string' ? outcome : await outcome;
      if (!outcomes.has(text) && outcomes.size < outcomesMax) outcomes.set(text, Buffer.from(input));
      return undefined;
    } catch (error) {
      return causeOf(error);
    }
  };

  const checkTarget = async (): Promise<string | undefined> => {
    try {
      await target.check?.();
      return undefined;
    } catch (error) {
      return `after the last inputs: ${causeOf(error)}`;
    }
  };

  const runOne = async (input: Buffer): Promise<Finding | undefined> => {
    runs += 1;
    const failure = await failureOf(input);
    const cause = failure ?? (runs % checkEvery === 0 ? await checkTarget() : undefined);
    if (cause === undefined || causes.has(cause)) return undefined;
    causes.add(cause);
    const shortest =
      failure === undefined
        ? input
        : await minimize(input, async (candidate) => (await failureOf(candidate)) === cause, minimizeTriesMax);
    return { kind: 'broken', message: cause, input: shortest };
  };

  return {
    runOne,
    runPool: async () => {
      const findings: Finding[] = [];
      for (const input of [...pool]) findings.push(...[(await runOne(input)) ?? []].flat());
      const cause = await checkTarget();
      return cause === undefined ? findings : [...findings, { kind: 'broken', message: cause, input: Buffer.alloc(0) }];
    },
    next: async () => {
      // Half of the time one of the newest: what was just reached is explored first.
      const from = random(2) === 0 ? Math.max(0, pool.length - 32) : 0;
      const candidate = (): Buffer => pool[from + random(pool.length - from)] as Buffer;
      const [one, other] = [candidate(), candidate()];
      // The shorter of two: it runs faster, and its bytes matter more.
      const base = one.length < other.length ? one : other;
      const input = mutate(random, base, pool, target);
      const known = outcomes.size;
      const finding = await runOne(input);
      if (outcomes.size > known && pool.length < poolMax) pool.push(Buffer.from(input));
      return finding;
    },
    runs: () => runs,
    pool,
    outcomes,
  };
};
