import { expect, test } from 'vitest';
import { createSlabs, type Region, type Slabs } from './slabs.ts';

/** Takes bytes, writes a letter over them, and keeps them. */
const put = ({ take, keep }: Slabs, bytes: number, letter: string) => {
  const { slab, start } = take(bytes);
  slab.bytes.fill(letter, start, start + bytes);
  const region: Region = { slab };
  const isKept = keep(slab, start + bytes, region);
  return { slab, region, isKept, text: () => slab.bytes.toString('latin1', start, start + bytes) };
};

test('slabs: what was kept is there until the ring comes around, and its memory is used again', () => {
  const slabs = createSlabs(8, 2);
  const first = put(slabs, 8, 'a');
  const second = put(slabs, 4, 'b');
  const third = put(slabs, 4, 'c');
  expect(third.slab).toBe(second.slab);
  expect([first.text(), second.text(), third.text()]).toEqual(['aaaaaaaa', 'bbbb', 'cccc']);
  const fourth = put(slabs, 8, 'd');
  expect(fourth.slab).toBe(first.slab);
  expect([first.region.slab, second.region.slab]).toEqual([undefined, second.slab]);
});

test('slabs: one that is leased is left as it is, and one that was released is used again', () => {
  const slabs = createSlabs(8, 2);
  const lease = slabs.lease();
  const leased = put(slabs, 8, 'a');
  lease.add(leased.slab);
  lease.add(leased.slab);
  for (const letter of 'bcdefg') put(slabs, 8, letter);
  expect(leased.text()).toBe('aaaaaaaa');
  const other = slabs.lease();
  const held = put(slabs, 8, 'h');
  other.add(held.slab);
  other.release();
  other.release();
  put(slabs, 8, 'i');
  expect(put(slabs, 8, 'j').slab).toBe(held.slab);
  lease.release();
  expect(leased.slab.users).toBe(0);
});

test('slabs: slow answers pin no more than they need once they hold many slabs', () => {
  const slabs = createSlabs(8, 2);
  const leases = Array.from({ length: 40 }, () => {
    const lease = slabs.lease();
    const { slab } = put(slabs, 5, 'a');
    lease.add(slab);
    return { lease, slab };
  });
  const pinned = new Set(leases.map(({ slab }) => slab.bytes.length));
  expect(pinned).toEqual(new Set([8, 5]));
  expect(leases.filter(({ slab }) => slab.bytes.length === 8).length).toBeLessThan(20);
  for (const { lease } of leases) lease.release();
  expect(put(slabs, 8, 'b').isKept).toBe(true);
});

test('slabs: what is larger than a slab has its own memory and is not kept', () => {
  const { isKept, slab } = put(createSlabs(8, 2), 9, 'a');
  expect([isKept, slab.bytes.length]).toEqual([false, 9]);
});
