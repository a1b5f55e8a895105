// A week in an hour: see soak.ts. `npm test` runs half a minute of it, with few clients and the events that cost little.
import { afterAll, expect, test } from 'vitest';
import { createRandom } from '../bars/random.ts';
import { barSeed, countOf, tally } from '../bars/tally.ts';
import { createDebianPrograms, type ProgramName } from '../support/debian-programs.ts';
import { type EventName, soakEvents } from './events.ts';
import { runSoak, type SoakPlan, type SoakResult } from './soak.ts';

const minutes = countOf('41');
const isFull = minutes >= 1;
const random = createRandom(barSeed());
const debian = createDebianPrograms();
afterAll(debian.remove);

type Size = Omit<SoakPlan, 'random' | 'haproxy' | 'prometheus' | 'seconds'>;

const small: Size = {
  streams: 4,
  readsPerSecond: 10,
  clients: { sdk: 2, bare: 2, socket: 1, events: 1, published: 1, 'published stream': 1, tls: 1 },
  pauseMs: 500,
  events: ['restart', 'secret', 'signers', 'certificate', 'conflict'],
  calmMs: 500,
  warmUpMs: 5_000,
};
const whole: Size = {
  streams: 20,
  readsPerSecond: 50,
  clients: { sdk: 60, bare: 40, socket: 40, events: 20, published: 20, 'published stream': 10, tls: 10 },
  pauseMs: 1_500,
  events: Object.keys(soakEvents) as EventName[], // its own names
  calmMs: 5_000,
  warmUpMs: Math.min(600_000, minutes * 10_000),
};

const findProgram = (name: ProgramName, skip: (why: string) => never): string => {
  const found = debian.find(name);
  return 'path' in found ? found.path : skip(found.missing);
};

const round = (value: number): number => Number(value.toFixed(1));

const tallySoak = ({ load, told, growths, ...result }: SoakResult): void => {
  const [first = 0, last = 0] = [told.p99Ms[1], told.p99Ms.at(-1)];
  tally({
    acknowledged: load.acknowledged,
    lost: result.lost,
    'lost at the second deployment': result.lostAtSecond,
    ...result.counted,
    'requests and reports of clients': Object.values(told.answered).reduce((sum, one) => sum + one, 0),
    'failures that the documents allow': told.failures.length - result.forbidden.length,
    'other failures': result.forbidden.length,
    'reports out of order': told.outOfOrder,
    'times `latest` went back': load.latestWentBack,
    'served beyond retention': result.servedTooLong,
    'deleted too early': result.deletedTooEarly,
    ...Object.fromEntries(Object.entries(result.events).map(([name, count]) => [`of the event ${name}`, count])),
    ...Object.fromEntries(
      growths.map(({ name, percentPerHour }) => [`% of memory per hour, ${name}, at most`, round(percentPerHour)]),
    ),
    ...Object.fromEntries(growths.map(({ name, memoryMb }) => [`MB of memory, ${name}, at most`, round(memoryMb)])),
    'descriptors more, at most': Math.max(0, ...growths.map(({ descriptors }) => descriptors)),
    '99th percentile of the last quarter to that of the second, at most': round(last / first),
    ...(result.alerts && {
      'alerts that did not fire': result.alerts.missed.length,
      'alerts without a cause': result.alerts.unexpected.length,
    }),
  });
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
    told: { outOfOrder: 0 },
    load: { refused: 0, latestWentBack: 0 },
  });
  expect(result.counted['of these not in them'] ?? 0).toBe(0);
  expect(result.load.acknowledged).toBe(result.load.sent);
  expect(result.alerts ?? { missed: [], unexpected: [] }).toEqual({ missed: [], unexpected: [] });
});
