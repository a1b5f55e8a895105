import { type FeedId, parseFeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { testStream } from '../../../../tests/support/running-ingest.ts';
import { ClientGoneError, createLongWork } from '../../access/long-work.ts';
import type { RouteContext } from './context.ts';
import { createDiscoveryRoute } from './discovery.ts';

const streams = Array.from({ length: 600 }, (_, i) => ({
  ...testStream(parseFeedId(`0x0003${(i + 1).toString(16).padStart(60, '0')}`)),
  name: `S${String((i * 7) % 600).padStart(3, '0')}`,
}));
const catalog = new Map(streams.map((stream) => [stream.feedId, stream]));
let nowMs = 0;
const context = {
  ...{ admin: { streams: catalog }, readable: undefined, userId: '', client: { destroyed: false } },
  longWork: createLongWork(() => nowMs++), // a slice is over after two looks at the clock
} as unknown as RouteContext; // all that discovery reads

const discovery = createDiscoveryRoute();

const namesIn = (body: unknown): readonly string[] => {
  const text = Buffer.concat(body as readonly Buffer[]).toString('utf8');
  return (JSON.parse(text) as { feeds: { name: string }[] }).feeds.map(({ name }) => name);
};

test.each([
  ['an anonymous caller', '', undefined],
  ['an account', 'one', new Set<FeedId>()],
])(
  'discovery: a large catalog is filtered and rendered in slices for %s, as one list by name',
  async (_, userId, readable) => {
    let [turns, isDone] = [0, false];
    const count = (): void => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    const caller = { ...context, userId, readable };
    const { body } = await discovery({}, caller);
    expect(turns).toBeGreaterThanOrEqual(2);
    expect(namesIn(body)).toEqual(streams.map(({ name }) => name).sort());
    turns = 0;
    expect(namesIn((await discovery({ base_asset: ['none'] }, caller)).body)).toEqual([]);
    isDone = true;
    expect(turns).toBeGreaterThanOrEqual(2);
  },
);

test('discovery: a list whose client has left is not made, and is not kept for others', async () => {
  const filter = {};
  const client = { destroyed: true };
  await expect(discovery(filter, { ...context, client })).rejects.toThrow(ClientGoneError);
  expect(namesIn((await discovery(filter, context)).body)).toHaveLength(600);
});

test('discovery: the same request gets the same bytes until the catalog changes; what is hidden is listed for each caller', async () => {
  const filter = {};
  const [first, second] = [await discovery(filter, context), await discovery(filter, context)];
  expect(second.body).toBe(first.body);
  expect(discovery(filter, context)).not.toBeInstanceOf(Promise); // a promise would be given a deadline
  const [one, ...others] = streams;
  const hidden = one === undefined ? [] : [{ ...one, hidden: true }];
  const changed = new Map([...hidden, ...others].map((stream) => [stream.feedId, stream]));
  const later = { ...context, admin: { streams: changed } } as unknown as RouteContext; // as above
  expect(namesIn((await discovery(filter, later)).body)).toHaveLength(599);
  const all = { hidden: true };
  const reader = { ...later, readable: new Set(changed.keys()) };
  expect(namesIn((await discovery(all, reader)).body)).toHaveLength(600);
  expect(namesIn((await discovery(all, later)).body)).toHaveLength(599);
});

test('discovery: a second request gets the same list; an empty catalog gives an empty one', async () => {
  expect(namesIn((await discovery({}, context)).body)).toHaveLength(600);
  const empty = { ...context, admin: { streams: new Map() } } as unknown as RouteContext; // as above
  expect(namesIn((await discovery({}, empty)).body)).toEqual([]);
});
