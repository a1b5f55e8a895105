// Owns how much accounts ask for: requests per account, route and day in UTC. Counting them in the pipeline and keeping them are
// others'; counts of several processes or moments add up.

/** Requests of one account to one route on one day, `2025-01-31`. */
export type UsageRow = {
  readonly userId: string;
  readonly day: string;
  readonly route: string;
  readonly requests: number;
};

/** Reads what is kept of an account, from a day on. */
export type UsageReader = (userId: string, fromDay: string) => Promise<readonly UsageRow[]>;

const dayMs = 86_400_000;

/** The day of a moment in UTC, or that of so many days before. */
export const usageDay = (ms: number, daysBefore = 0): string =>
  new Date(ms - daysBefore * dayMs).toISOString().slice(0, 10);

/** Adds counts up: one row for each account, day and route, in this order. */
export const mergeUsage = (...lists: readonly (readonly UsageRow[])[]): readonly UsageRow[] => {
  const merged = new Map<string, UsageRow>();
  for (const row of lists.flat()) {
    const key = `${row.userId} ${row.day} ${row.route}`;
    merged.set(key, { ...row, requests: row.requests + (merged.get(key)?.requests ?? 0) });
  }
  return [...merged].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
};
