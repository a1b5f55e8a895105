import type { FeedId } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { tallyControl } from '../support/full-count.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { acknowledgedUntil, copyOf, countMissing, newestOf, sizeOf } from './ledger.ts';

const feedId = secondStream(1);
const { report } = await createSignedReports();
const textOf = (second: number): string =>
  `0x${Buffer.from(report(feedId, second, second).fullReport).toString('hex')}`;
const acknowledged = new Map<FeedId, Map<number, string>>([[feedId, new Map([1, 2, 3].map((s) => [s, textOf(s)]))]]);

/** A store whose reports are these seconds, each with the bytes of another where given. */
const storeOf = (seconds: ReadonlyMap<number, number>) => ({
  at: async (_: readonly FeedId[], second: number) => {
    const bytesOf = seconds.get(second);
    return bytesOf === undefined ? [] : [report(feedId, bytesOf, bytesOf)];
  },
});

test('ledger: what was acknowledged and is there byte for byte is not missing', async () => {
  const all = storeOf(new Map([1, 2, 3].map((second) => [second, second])));
  expect(await countMissing(all, acknowledged)).toBe(0);
});

test('ledger: a report that was dropped, or has other bytes, is missing (control)', async () => {
  const dropped = storeOf(new Map([1, 3].map((second) => [second, second])));
  expect(await countMissing(dropped, acknowledged)).toBe(1);
  tallyControl({ 'dropped reports found': 1 });
  const altered = storeOf(
    new Map([
      [1, 1],
      [2, 3],
      [3, 3],
    ]),
  );
  expect(await countMissing(altered, acknowledged)).toBe(1);
});

test('ledger: a copy has what was acknowledged until then', () => {
  const copy = copyOf(acknowledged);
  expect([sizeOf(copy), sizeOf(acknowledgedUntil(acknowledged, 2))]).toEqual([3, 2]);
  acknowledged.get(feedId)?.set(4, textOf(4));
  expect(sizeOf(copy)).toBe(3);
  expect([newestOf(copy).get(feedId), newestOf(acknowledged).get(feedId)]).toEqual([3, 4]);
  acknowledged.get(feedId)?.delete(4);
});
