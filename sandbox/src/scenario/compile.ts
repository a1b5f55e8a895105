// From an event to what it does: effects on the simulated network, which threads sign by, and acts of the sandbox itself.
import { explainMatch, type FeedId, matchStreams, type Stream } from '@sealpost/protocol';
import type { Effect } from '@sealpost/simulator';
import { clockMaxMs } from '../clock.ts';
import type { Fault } from '../faults/kinds.ts';
import { createBody } from '../push/body.ts';
import { SandboxError } from '../push/errors.ts';
import { parsePrice } from '../push/prices.ts';
import type { PushedReport } from '../push/push.ts';
import { dateSeconds, durationSeconds, type EventOf, type ScenarioEvent } from './event-table.ts';
import { ScenarioError } from './parse.ts';

/** Done by the sandbox when its time gets to `second`, before the reports of that second. */
export type ScenarioAct = { readonly second: number } & (
  | { readonly kind: 'rotate' }
  | { readonly kind: 'announce'; readonly feedIds: readonly FeedId[]; readonly endSecond: number }
  | { readonly kind: 'decommission'; readonly feedIds: readonly FeedId[] }
  | { readonly kind: 'fault'; readonly fault: Fault }
  | { readonly kind: 'removeFault'; readonly id: string }
  | { readonly kind: 'clearFaults' }
  | { readonly kind: 'push'; readonly report: Pick<PushedReport, 'stream' | 'price' | 'options'> }
  | { readonly kind: 'speed'; readonly speed: number }
  | { readonly kind: 'pause' }
);

export type CompiledEvent = { readonly effects: readonly Effect[]; readonly acts: readonly ScenarioAct[] };

/** The catalog that an event's streams are looked up in. */
export type Catalog = readonly Pick<Stream, 'feedId' | 'name' | 'baseAsset' | 'quoteAsset'>[];

const forever = Number.POSITIVE_INFINITY;
const secondsOr = (text: string | undefined, fallback: number): number =>
  text === undefined ? fallback : (durationSeconds(text) ?? fallback);

/** The second of an event in a scenario that starts at one. */
export function secondOfEvent({ at }: ScenarioEvent, startSecond: number, path: string): number {
  const field = path === '' ? 'at' : `${path}.at`;
  const after = at === undefined ? 0 : durationSeconds(at);
  const second = after === undefined ? dateSeconds(at ?? '') : startSecond + after;
  if (second === undefined || second < startSecond)
    throw new ScenarioError(field, `is ${at}, which is before the start.`);
  if (second * 1_000 > clockMaxMs)
    throw new ScenarioError(field, `is ${at}, expected a time up to ${new Date(clockMaxMs).toISOString()}.`);
  return second;
}

/** The feed IDs of streams that are named by pair, name or feed ID. */
export function eventFeedIds(
  given: string | readonly string[] | undefined,
  catalog: Catalog,
  path: string,
): readonly FeedId[] {
  if (given === undefined) return catalog.map(({ feedId }) => feedId);
  const list = typeof given === 'string' ? [given] : given;
  const found = list.map((name, i) => {
    const match = matchStreams(name, catalog);
    if (match.found === 'one') return match.stream.feedId;
    const where = typeof given === 'string' ? path : `${path}[${i}]`;
    const known = match.found === 'none' ? ` Streams: ${namesOf(catalog)}.` : '';
    throw new ScenarioError(where, `${explainMatch(name, match)}${known}`);
  });
  return [...new Set(found)];
}

const namesMax = 10;
const namesOf = (catalog: Catalog): string => {
  const names = catalog.slice(0, namesMax).map(({ name }) => name);
  return catalog.length > namesMax ? `${names.join(', ')} and ${catalog.length - namesMax} more` : names.join(', ');
};

/** What an event at a second does. Throws where it names a stream that there is not. */
export function compileEvent(event: ScenarioEvent, second: number, catalog: Catalog, path = ''): CompiledEvent {
  const field = (name: string): string => (path === '' ? name : `${path}.${name}`);
  if (event.type === 'push') return compilePush(event, second, catalog, field);
  const feedIds =
    'streams' in event ? eventFeedIds(event.streams, catalog, field('streams')) : catalog.map((one) => one.feedId);
  return { effects: effectsOf(event, second, feedIds), acts: actsOf(event, second, feedIds) };
}

/** The stream has no simulated reports from then on: they would overwrite what was pushed with another price a second later. */
const compilePush = (
  { stream: asked, price, bid, ask, validFrom, observedAt, fields }: EventOf<'push'>,
  second: number,
  catalog: Catalog,
  field: (name: string) => string,
): CompiledEvent => {
  const [feedId] = eventFeedIds(asked, catalog, field('stream')) as [FeedId]; // or it threw
  const stream = { feedId, name: catalog.find((one) => one.feedId === feedId)?.name ?? asked };
  const options = {
    ...(observedAt !== undefined && { at: observedAt }),
    ...(validFrom !== undefined && { validFrom }),
    ...(bid !== undefined && { bid }),
    ...(ask !== undefined && { ask }),
    ...(fields !== undefined && { fields }),
  };
  const ms = second * 1_000;
  try {
    createBody(stream, parsePrice('price', price), { validFromMs: ms, observationsMs: ms }, options);
  } catch (error) {
    if (error instanceof SandboxError) throw new ScenarioError(field(error.argument), error.message);
    throw error;
  }
  return {
    effects: [{ kind: 'silence', from: second, to: forever, feedIds: [feedId], backfill: false }],
    acts: [{ kind: 'push', second, report: { stream, price, options } }],
  };
};

const effectsOf = (event: ScenarioEvent, from: number, feedIds: readonly FeedId[]): readonly Effect[] => {
  const start = { from, feedIds };
  const span = { ...start, to: from + ('for' in event ? secondsOr(event.for, forever) : forever) };
  switch (event.type) {
    case 'level':
      return [{ kind: 'level', ...start, price: event.price }];
    case 'jump':
      return [{ kind: 'jump', ...start, percent: event.percent }];
    case 'drift':
      return [{ kind: 'drift', ...span, percentPerHour: event.percentPerHour }];
    case 'volatility':
      return [{ kind: 'volatility', ...span, factor: event.factor }];
    case 'crash':
      return [{ kind: 'crash', ...start, percent: event.percent, ...excursionOf(event) }];
    case 'depeg':
      return [{ kind: 'depeg', ...start, price: event.price, ...excursionOf(event) }];
    case 'freeze':
      return [{ kind: 'freeze', ...span }];
    case 'market':
      return [{ kind: 'market', ...span, state: event.state as 'open' | 'closed' | 'hours' }]; // the table's choices
    case 'decommission':
      return [{ kind: 'end', feedIds, from: from + secondsOr(event.in, 0) }];
    case 'rotate':
      return [{ kind: 'rotation', from }];
    case 'outage':
      return [{ kind: 'silence', ...span, backfill: event.recovery === 'backfill' }];
    case 'stop':
    case 'gap':
      return [{ kind: 'silence', ...span, backfill: false }];
    case 'clear':
      return event.what === 'faults'
        ? []
        : [
            { kind: 'natural', ...start },
            { kind: 'market', ...start, to: forever, state: 'hours' },
            { kind: 'resumption', ...start },
          ];
    default:
      return [];
  }
};

type ExcursionTexts = { readonly over?: string; readonly hold?: string; readonly recover?: string };

const excursionOf = ({ over, hold, recover }: ExcursionTexts) => ({
  overSeconds: secondsOr(over, 0),
  holdSeconds: secondsOr(hold, 0),
  recoverSeconds: secondsOr(recover, forever),
});

const actsOf = (event: ScenarioEvent, second: number, feedIds: readonly FeedId[]): readonly ScenarioAct[] => {
  switch (event.type) {
    case 'decommission': {
      const endSecond = second + secondsOr(event.in, 0);
      const end: ScenarioAct = { kind: 'decommission', second: endSecond, feedIds };
      return event.in === undefined ? [end] : [{ kind: 'announce', second, feedIds, endSecond }, end];
    }
    case 'rotate':
      return [{ kind: 'rotate', second }];
    case 'fault':
      return [{ kind: 'fault', second, fault: event.fault as Fault }]; // parsed by the faults' own table
    case 'remove':
      return [{ kind: 'removeFault', second, id: event.id }];
    case 'clear':
      return event.what === 'streams' ? [] : [{ kind: 'clearFaults', second }];
    case 'speed':
      return [{ kind: 'speed', second, speed: event.speed }];
    case 'pause':
      return [{ kind: 'pause', second }];
    default:
      return []; // resume and step are commands, not events of a time line
  }
};
