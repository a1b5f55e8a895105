// Dates that exist: Date.parse takes 30 February for 1 or 2 March, and the hour 24 for the next day.

/** Milliseconds of a date, `YYYY-MM-DD` and what may follow it in RFC 3339. NaN if there is no such day or hour. The caller has checked its form. */
export function realDateMs(raw: string): number {
  const [day, hour] = [raw.slice(0, 10), raw.slice(11, 13)];
  const startMs = Date.parse(`${day}T00:00:00Z`);
  const isReal = !Number.isNaN(startMs) && new Date(startMs).toISOString().startsWith(day) && hour !== '24';
  return isReal ? Date.parse(raw) : Number.NaN;
}
