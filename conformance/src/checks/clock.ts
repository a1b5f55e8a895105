// The clock: how far the timestamp of a request may be from the server's time, to half a second.
import { setTimeout as sleep } from 'node:timers/promises';
import { authHeaders } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { ClockBounds } from '../clock.ts';
import { demand, demandStatus, SkipError } from '../verdict.ts';
import { goodTarget } from './signing.ts';

const skew = 'It must be synchronized with the server time; the maximum discrepancy is 5 seconds by default.';

/** Bounds that are this close are good enough. */
const widthMs = 150;
const narrowingsMax = 5;

/** Halves the bounds with requests that arrive when, by their middle, a second of the server begins; undefined if its answers have no usable time. */
const narrowBounds = async ({ ask, requester }: CheckContext, target: string): Promise<ClockBounds | undefined> => {
  let wayMs = (await ask(target)).firstByteMs / 2;
  for (let i = 0; i < narrowingsMax; i += 1) {
    const bounds = requester.clockBounds();
    if (bounds === undefined || bounds.highMs - bounds.lowMs <= widthMs) break;
    const arrivesMs = Date.now() + wayMs + (bounds.lowMs + bounds.highMs) / 2;
    await sleep(1_000 - (arrivesMs % 1_000));
    wayMs = (await ask(target)).firstByteMs / 2;
  }
  return requester.clockBounds();
};

/** How far from the limit requests are made, until one decides. */
const distancesMs = [500, 1_000, 2_500] as const;
/** Of what is measured here. */
const toleranceMs = 100;

const offBy =
  (side: 'within' | 'outside', sign: 1 | -1): Check['run'] =>
  async (context) => {
    const { skewMaxMs } = context.rules;
    const target = await goodTarget(context);
    const bounds = await narrowBounds(context, target);
    const offsetMs = context.requester.signingOffsetMs();
    const { lowMs, highMs } = bounds ?? { lowMs: offsetMs, highMs: offsetMs };
    const isOutside = side === 'outside';
    const statuses = isOutside ? [400, 401] : [200];
    // On its way, a timestamp of the future comes closer to the server's time, one of the past gets further from it.
    const isHelped = sign > 0 === isOutside;
    for (const distanceMs of bounds === undefined ? distancesMs.slice(-1) : distancesMs) {
      const fromServerMs = isOutside ? skewMaxMs + distanceMs : skewMaxMs - distanceMs;
      if (fromServerMs < 0) continue;
      const skewMs = Math.round((isHelped ? highMs : lowMs) - offsetMs + sign * fromServerMs);
      const answer = await context.ask(target, { signed: { skewMs } });
      if (statuses.includes(answer.status)) return;
      if (bounds === undefined || !isHelped || answer.firstByteMs + toleranceMs < distanceMs)
        demandStatus(answer, statuses, `${statuses.join(' or ')} ${fromServerMs} ms from the server’s time`);
    }
    throw new SkipError('Answers take too long to tell how far a clock may be off.');
  };

const synchronized: Check['run'] = async ({ requester, rules }) => {
  const measuredMs = requester.clockOffsetMs();
  if (measuredMs === undefined) throw new SkipError('No answer said what time it is: there was no Date header.');
  const offsetMs = Math.round(measuredMs);
  demand(
    Math.abs(offsetMs) <= rules.skewMaxMs,
    `clocks at most ${rules.skewMaxMs} ms apart`,
    () => `the server’s clock is ${Math.abs(offsetMs)} ms ${offsetMs > 0 ? 'ahead of' : 'behind'} this machine’s`,
    requester.attempts[0],
  );
};

export const clockChecks: readonly Check[] = [
  {
    id: 'clock.synchronized',
    title: 'The clock of the server and of this machine agree',
    source: 'specification',
    sentence: skew,
    run: synchronized,
  },
  {
    id: 'clock.behind',
    title: 'A clock that is a few seconds behind is accepted',
    source: 'specification',
    sentence: skew,
    run: offBy('within', -1),
  },
  {
    id: 'clock.ahead',
    title: 'A clock that is a few seconds ahead is accepted',
    source: 'specification',
    sentence: skew,
    run: offBy('within', 1),
  },
  {
    id: 'clock.stale',
    title: 'A timestamp that is too old is rejected',
    source: 'specification',
    sentence: skew,
    run: offBy('outside', -1),
  },
  {
    id: 'clock.future',
    title: 'A timestamp that is too far in the future is rejected',
    source: 'specification',
    sentence: skew,
    run: offBy('outside', 1),
  },
  {
    id: 'clock.seconds',
    title: 'A timestamp in seconds is rejected',
    source: 'specification',
    sentence: 'The current time, with millisecond precision.',
    run: async (context) => {
      const seconds = String(Math.floor(Date.now() / 1_000));
      const answer = await context.ask(await goodTarget(context), { headers: { [authHeaders.timestamp]: seconds } });
      demandStatus(answer, [400, 401]);
    },
  },
];
