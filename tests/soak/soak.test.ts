// A week in an hour: see soak.ts. `npm test` runs half a minute of it, with few clients and the events that cost little.
import { expect, test } from 'vitest';
import { findDebianProgram, type ProgramName } from '../support/debian-programs.ts';
import { countOf, isFull, seedOf, tally } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import { type EventName, soakEvents } from './events.ts';
import type { Growth } from './measures.ts';
import { runSoak, type SoakPlan, type SoakResult } from './soak.ts';

const minutes = countOf(0.25, 6);
const random = createRandom(seedOf());

type Size = Omit<SoakPlan, 'random' | 'haproxy' | 'prometheus' | 'seconds'>;

const small: Size = {
  streams: 4,
  readsPerSecond: 10,
  clients: { sdk: 2, bare: 2, socket: 1, events: 1, published: 1, 'published stream': 1, tls: 1 },
  pauseMs: 500,
  events: ['restart', 'secret', 'signers', 'certificate', 'conflict'],
  calmMs: 500,
  warmUpMs: 5_000,
  leastLifeMs: 0,
};
const whole: Size = {
  streams: 20,
  readsPerSecond: 50,
  clients: { sdk: 60, bare: 40, socket: 40, events: 20, published: 20, 'published stream': 10, tls: 10 },
  pauseMs: 1_500,
  events: Object.keys(soakEvents) as EventName[], // its own names
  calmMs: 15_000,
  warmUpMs: Math.min(600_000, minutes * 10_000),
  leastLifeMs: Math.min(600_000, minutes * 10_000),
};

const findProgram = (name: ProgramName, skip: (why: string) => never): string => {
  const found = findDebianProgram(name);
  return 'path' in found ? found.path : skip(found.missing);
};

const round = (value: number): number => Number(value.toFixed(1));

/** The largest value of each name. */
const largest = <T extends { readonly name: string }>(
  growths: readonly T[],
  what: string,
  of: (one: T) => number,
): Record<string, number> => {
  const values: Record<string, number> = {};
  for (const one of growths) {
    const name = `${what}, ${one.name}`;
    values[name] = Math.max(values[name] ?? Number.NEGATIVE_INFINITY, round(of(one)));
  }
  return values;
};

const isDatabase = ({ name }: Growth): boolean => name.startsWith('PostgreSQL');

const tallyGrowths = (growths: readonly Growth[]): Record<string, number> => ({
  ...largest(growths, '% of memory per hour', ({ percentPerHour }) => percentPerHour),
  ...largest(growths, 'MB of memory per hour', ({ megabytesPerHour }) => megabytesPerHour),
  ...largest(growths, 'MB of memory', ({ memoryMb }) => memoryMb),
  ...largest(growths, 'minutes measured', (one) => one.minutes),
  // Those of a database are of its tables, of which there are more every day.
  'descriptors more': Math.max(0, ...growths.filter((one) => !isDatabase(one)).map((one) => one.descriptors)),
  'processes of a database more': Math.max(0, ...growths.filter(isDatabase).map((one) => one.processes)),
});

const tallySoak = ({ load, told, growths, drift, ...result }: SoakResult): void =>
  tally({
    acknowledged: load.acknowledged,
    'not acknowledged': load.sent - load.acknowledged,
    lost: result.lost,
    'lost at the second deployment': result.lostAtSecond,
    ...result.counted,
    'requests and reports of clients': Object.values(told.answered).reduce((sum, one) => sum + one, 0),
    'failures that the documents allow': result.allowed.reduce((sum, { count }) => sum + count, 0),
    ...tallyAllowed(result.allowed),
    'other failures': result.forbidden.length,
    'wrong answers': load.wrong,
    'reports out of order': told.outOfOrder,
    'reports that live readers did not get': result.undelivered,
    'times `latest` went back': load.latestWentBack,
    'served beyond retention': result.servedTooLong,
    'deleted too early': result.deletedTooEarly,
    ...Object.fromEntries(Object.entries(result.events).map(([name, count]) => [`of the event ${name}`, count])),
    ...tallyGrowths(growths),
    ...largest(result.heaps, '% of the heap in use per hour', ({ percentPerHour }) => percentPerHour),
    '% that the file of LMDB grew more than its data': round(result.fileExcess),
    ...(drift && {
      '% drift of the 99th percentile': round(drift.percent),
      'ms, 99th percentile': round(drift.p99Ms),
    }),
    ...(result.alerts && {
      'alerts that did not fire': result.alerts.missed.length,
      'alerts without a cause': result.alerts.unexpected.length,
    }),
  });

const tallyAllowed = (rows: SoakResult['allowed']): Record<string, number> => {
  const counts: Record<string, number> = {};
  for (const { event, kind, count } of rows) {
    const name = `allowed: ${kind}, ${event}`;
    counts[name] = (counts[name] ?? 0) + count;
  }
  return counts;
};

test(`soak: a whole deployment for ${minutes} minutes loses nothing, and fails only what the documents allow`, {
  timeout: (minutes + 15) * 60_000,
}, async ({ skip }) => {
  const haproxy = findProgram('haproxy', skip);
  const prometheus = isFull ? findProgram('prometheus', skip) : undefined;
  const plan: SoakPlan = {
    ...(isFull ? whole : small),
    seconds: minutes * 60,
    random,
    haproxy,
    ...(prometheus && { prometheus }),
  };
  const result = await runSoak(plan);
  tallySoak(result);
  expect(result).toMatchObject({
    ended: [],
    forbidden: [],
    lost: 0,
    lostAtSecond: 0,
    servedTooLong: 0,
    deletedTooEarly: 0,
    undelivered: 0,
    told: { outOfOrder: 0 },
    load: { refused: 0, latestWentBack: 0, wrong: 0 },
  });
  expect(result.counted['of these not in them'] ?? 0).toBe(0);
  expect(result.load.acknowledged).toBe(result.load.sent);
  expect(result.alerts ?? { missed: [], unexpected: [] }).toEqual({ missed: [], unexpected: [] });
});
