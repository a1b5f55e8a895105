// A week in minutes: see soak.ts. `npm test` runs a quarter of one, with few clients and the events that cost little.
import { expect, test } from 'vitest';
import { findDebianProgram } from '../support/debian-programs.ts';
import { countOf, isFull, seedOf, tally } from '../support/full-count.ts';
import { createRandom } from '../support/random.ts';
import { type EventName, soakEvents } from './events.ts';
import { runSoak, type SoakPlan, type SoakResult } from './soak.ts';

const minutes = countOf(0.25, 6);
const random = createRandom(seedOf());

type Size = Omit<SoakPlan, 'random' | 'haproxy' | 'seconds'>;

const small: Size = {
  streams: 2,
  readsPerSecond: 5,
  clients: { sdk: 1, bare: 1, socket: 1, events: 1, published: 1, 'published stream': 1, tls: 1 },
  pauseMs: 500,
  events: ['restart', 'secret', 'signers', 'certificate', 'conflict'],
  calmMs: 500,
};
const whole: Size = {
  streams: 20,
  readsPerSecond: 50,
  clients: { sdk: 60, bare: 40, socket: 40, events: 20, published: 20, 'published stream': 10, tls: 10 },
  pauseMs: 1_500,
  events: Object.keys(soakEvents) as EventName[], // its own names
  calmMs: 5_000,
};

const tallySoak = ({ load, told, ...result }: SoakResult): void =>
  tally({
    acknowledged: load.acknowledged,
    'not acknowledged': load.sent - load.acknowledged,
    lost: result.lost,
    'lost at the second deployment': result.lostAtSecond,
    ...result.counted,
    'requests and reports of clients': Object.values(told.answered).reduce((sum, one) => sum + one, 0),
    'failures that the documents allow': result.allowed.reduce((sum, { count }) => sum + count, 0),
    'other failures': result.forbidden.length,
    'wrong answers': load.wrong,
    'reports out of order': told.outOfOrder,
    'reports that live readers did not get': result.undelivered,
    'times `latest` went back': load.latestWentBack,
    'served beyond retention': result.servedTooLong,
    'deleted too early': result.deletedTooEarly,
    ...Object.fromEntries(Object.entries(result.events).map(([name, count]) => [`of the event ${name}`, count])),
  });

test(`soak: a whole deployment for ${minutes} minutes loses nothing, and fails only what the documents allow`, {
  timeout: (minutes + 15) * 60_000,
}, async ({ skip }) => {
  const haproxy = findDebianProgram('haproxy');
  if ('missing' in haproxy) return skip(haproxy.missing);
  const plan: SoakPlan = { ...(isFull ? whole : small), seconds: minutes * 60, random, haproxy: haproxy.path };
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
});
