import { expect, test } from 'vitest';
import { createCountExchange, createSharedCounts } from './shared-counts.ts';

test('shared counts: a process gets the sum of the others, without its own', () => {
  const exchange = createCountExchange();
  const [one, two, three] = [createSharedCounts(), createSharedCounts(), createSharedCounts()];
  const all = [one, two, three];
  const meet = (): void => {
    for (const [i, counts] of all.entries()) exchange.tell(i, counts.drain());
    for (const [i, counts] of all.entries()) counts.receive(exchange.collect(i));
  };
  for (const i of all.keys()) exchange.join(i);
  one.set('alice', 2);
  two.set('alice', 3);
  two.set('bob', 1);
  meet();
  expect(all.map(({ elsewhere }) => elsewhere('alice'))).toEqual([3, 2, 5]);
  expect(all.map(({ elsewhere }) => elsewhere('bob'))).toEqual([1, 0, 1]);
  two.set('alice', 0);
  meet();
  expect(all.map(({ elsewhere }) => elsewhere('alice'))).toEqual([0, 2, 2]);
  expect(one.drain()).toEqual([]);
});

test('shared counts: an exited process no longer counts, and a new one gets all counts', () => {
  const exchange = createCountExchange();
  const stays = createSharedCounts();
  exchange.join(1);
  exchange.join(2);
  exchange.tell(1, [['alice', 4]]);
  exchange.tell(2, [['alice', 1]]);
  expect(exchange.join(3)).toEqual([['alice', 5]]);
  stays.receive(exchange.collect(2));
  expect(stays.elsewhere('alice')).toBe(4);
  exchange.leave(1);
  stays.receive(exchange.collect(2));
  expect(stays.elsewhere('alice')).toBe(0);
});
