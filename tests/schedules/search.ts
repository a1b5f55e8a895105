// Runs schedules one after the other, until one violates an invariant.
import { withVirtualTime } from './global-time.ts';
import type { Planted } from './planted.ts';
import { protocols } from './planted.ts';
import { type Outcome, type Ran, runSchedule, shrink } from './schedule.ts';

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

export const searchSchedules = ({ protocol: name, variant = {}, seed: first, count }: Search): Promise<Searched> =>
  withVirtualTime(async (use) => {
    const protocol = protocols[name];
    const sums: Record<string, number> = {};
    for (let ran = 0; ran < count; ran++) {
      const seed = (first + ran) % seedMax;
      const { violation, outcome } = await runSchedule(protocol, variant, use, { seed });
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
  hasFaults = true,
): Promise<Ran> =>
  withVirtualTime((use) => runSchedule(protocols[name], variant, use, { seed, hasSteps: true, hasFaults }));

export const describeFailure = (name: ProtocolName, { seed, found }: Failure, options = ''): string =>
  [
    found.violation?.message ?? 'It does not fail again.',
    ...found.steps,
    `Again: npm run schedules -- ${name} --seed ${seed}${options}`,
  ].join('\n');
