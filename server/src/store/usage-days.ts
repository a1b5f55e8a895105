// Owns how many days of usage are kept. Days are texts, `2025-01-31`, and compare as such.

/** Days that are kept, the newest one included. */
const usageDaysMax = 400;

const dayMs = 86_400_000;

/** So many days later. */
export const addDays = (day: string, days: number): string =>
  new Date(Date.parse(`${day}T00:00:00Z`) + days * dayMs).toISOString().slice(0, 10);

/** The oldest day that stays once a day was added. */
export const firstDayKept = (newestDay: string): string => addDays(newestDay, 1 - usageDaysMax);
