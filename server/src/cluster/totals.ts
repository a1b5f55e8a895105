// The workers' metrics in the primary: the last values of each, and the totals of those that exited, so that no counter ever decreases.
import { type MetricValues, sumMetrics, totalsOf } from '../observe/metrics.ts';

type Values = readonly MetricValues[];

export type WorkerTotals = {
  readonly told: (member: number, values: Values) => void;
  readonly ended: (member: number) => void;
  /** How often a running worker has reported. */
  readonly countOf: (member: number) => number;
  /** The last values of each running worker, and one part for all that exited. */
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
      // Both change in one step: a worker that exits meanwhile is never in both.
      const [living, ended] = [[...last.values()].map(({ values }) => values), gone];
      return [...living, await ended];
    },
  };
};
