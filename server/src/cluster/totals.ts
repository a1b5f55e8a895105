// The metrics of workers, seen from the primary: what each told last, and the counts of those that have ended, so that no total
// ever goes back.
import { type MetricValues, sumMetrics, totalsOf } from '../observe/metrics.ts';

type Values = readonly MetricValues[];

export type WorkerTotals = {
  readonly told: (member: number, values: Values) => void;
  readonly ended: (member: number) => void;
  /** How often a living worker has told. */
  readonly countOf: (member: number) => number;
  /** What each living worker told last, and one part for all that are gone. */
  readonly parts: () => Promise<readonly Values[]>;
};

export const createWorkerTotals = (): WorkerTotals => {
  const last = new Map<number, { readonly values: Values; readonly count: number }>();
  const countOf = (member: number): number => last.get(member)?.count ?? 0;
  let gone: Promise<Values> = Promise.resolve([]);
  return {
    told: (member, values) => void last.set(member, { values, count: countOf(member) + 1 }),
    countOf,
    ended: (member) => {
      const totals = totalsOf(last.get(member)?.values ?? []);
      last.delete(member);
      if (totals.length > 0) gone = gone.then((sum) => sumMetrics([sum, totals]));
    },
    parts: async () => {
      // Both are taken in one step: a worker that ends meanwhile is in neither or in one of them, never in both.
      const [living, ended] = [[...last.values()].map(({ values }) => values), gone];
      return [...living, await ended];
    },
  };
};
