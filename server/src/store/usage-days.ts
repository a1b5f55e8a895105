// How many days of usage are kept. Days are texts, `2025-01-31`, and compare as such.

/** Days that are kept, the newest one before today included. */
const usageDaysMax = 400;

const dayMs = 86_400_000;

/** So many days later. */
export const addDays = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);

/** The day of a moment in UTC. */
export const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/**
 * The oldest day that stays, given the newest stored day before today. Neither a row dated ahead of the clock nor a clock that leaps ahead for
 * less than a day removes anything by it (D146).
 */
export const firstDayKept = (newestDayBefore: string): string => addDays(newestDayBefore, 1 - usageDaysMax);
