import { expect, test } from 'vitest';
import { createReportRoom } from './report-room.ts';

const bytes = (length: number, value: number): Buffer => Buffer.alloc(length, value);

test('report room: reports of a slice are copied side by side, the next slice uses the same memory, and what does not fit has its own', () => {
  const room = createReportRoom();
  const copy = room.begin();
  const source = bytes(736, 1);
  const [first, second, large] = [copy(source), copy(bytes(40_000, 2)), copy(bytes(100_000, 3))];
  source.fill(9);
  expect([first, second, large]).toEqual([bytes(736, 1), bytes(40_000, 2), bytes(100_000, 3)]);
  expect([second.buffer, second.byteOffset]).toEqual([first.buffer, 736]);
  expect(large.buffer).not.toBe(first.buffer);
  const again = room.begin()(bytes(10, 4));
  expect([again.buffer, again.byteOffset]).toEqual([first.buffer, 0]);
});
