import { expect, test } from 'vitest';
import { createEventIds } from './event-id.ts';

const lineage = (epoch: number, key: number) => ({ epoch: Buffer.alloc(6, epoch), key: Buffer.alloc(16, key) });
const ids = createEventIds(lineage(1, 2));

test('event id: a position comes back, again and again, and the id is 22 characters that any client can keep', () => {
  for (const position of [0, 1, 2, 1_000_000, 2 ** 47, 1]) {
    expect(ids.encode(position)).toMatch(/^[A-Za-z0-9_-]{22}$/);
    expect(ids.parse(ids.encode(position))).toBe(position);
  }
  expect([ids.parse(undefined), ids.parse('')]).toEqual([undefined, undefined]);
});

test('event id: neighboring positions have nothing in common', () => {
  const [one, two] = [ids.encode(41), ids.encode(42)].map((id) => Buffer.from(id, 'base64url')) as [Buffer, Buffer];
  const same = [...one].filter((byte, i) => byte === two[i]).length;
  expect(same).toBeLessThan(4);
});

test('event id: an id of another lineage, of another key, from before ids were encrypted, or made up, is foreign', () => {
  for (const other of [createEventIds(lineage(3, 2)), createEventIds(lineage(1, 4))])
    expect(ids.parse(other.encode(7))).toBe('foreign');
  const altered = Buffer.from(ids.encode(7), 'base64url');
  altered[9] = (altered[9] as number) ^ 1;
  for (const id of ['7', '123456789012345', 'A'.repeat(22), altered.toString('base64url')])
    expect(ids.parse(id)).toBe('foreign');
});

test.each(['seven', '-1', '1234567890123456', 'A'.repeat(23), `${'A'.repeat(21)}!`, '1 2'])(
  'event id: %s cannot be one and is refused by name',
  (id) => expect(() => ids.parse(id)).toThrow('Last-Event-ID'),
);
