// Runs schedules one after the other, until one violates an invariant.
import { withVirtualTime } from './global-time.ts';
import type { Planted } from './planted.ts';
import { protocols } from './planted.ts';
import { type Outcome, type Ran, type RunOptions, runSchedule, shrink } from './schedule.ts';

export type ProtocolName = keyof typeof protocols;

export type Search = {
  readonly protocol: ProtocolName;
  /** A planted bug; nothing where the product is tested. */
  readonly variant?: Planted['variant'];
  readonly seed: number;
  readonly count: number;
};

/** What a search ran, and the first schedule that failed, without the actions that it does not need. */
export type Searched = { readonly ran: number; readonly outcome: Outcome; readonly failure: Failure | undefined };
export type Failure = { readonly seed: number; readonly found: Ran };

const seedMax = 2 ** 32;

/** Faults make thousands of errors, and nobody reads where they come from: the seed shows it again, with stacks. */
const withoutStacks = async <T>(act: () => Promise<T>): Promise<T> => {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return await act();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
};

export const searchSchedules = ({ protocol: name, variant = {}, seed: first, count }: Search): Promise<Searched> =>
  withVirtualTime(async (use) => {
    const protocol = protocols[name];
    const sums: Record<string, number> = {};
    for (let ran = 0; ran < count; ran++) {
      const seed = (first + ran) % seedMax;
      const { violation, outcome } = await withoutStacks(() => runSchedule(protocol, variant, use, { seed })).catch(
        (cause: unknown) => {
          throw new Error(`The schedule of seed ${seed} ended with an error that is no violation.`, { cause });
        },
      );
      for (const [what, value] of Object.entries(outcome)) sums[what] = (sums[what] ?? 0) + value;
      if (violation === undefined) continue;
      return { ran: ran + 1, outcome: sums, failure: { seed, found: await shrink(protocol, variant, use, seed) } };
    }
    return { ran: count, outcome: sums, failure: undefined };
  });

/** The steps of one schedule. */
export const showSchedule = (
  name: ProtocolName,
  variant: Planted['variant'],
  seed: number,
  options: Pick<RunOptions, 'hasFaults' | 'when'> = {},
): Promise<Ran> =>
  withVirtualTime((use) => runSchedule(protocols[name], variant, use, { seed, hasSteps: true, ...options }));

export const describeFailure = ({ seed, found }: Failure): string =>
  [`seed ${seed}: ${found.violation?.message ?? 'it does not fail again'}`, ...found.steps].join('\n');
