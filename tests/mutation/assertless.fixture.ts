// The control: every line of feed-id.ts runs, and nothing is expected of it.
import { test } from 'vitest';
import { parseFeedId, schemaVersionOf, timeResolutionOf } from '../../protocol/src/feed-id.ts';

test('feed ID: nothing is asserted', () => {
  const feedId = parseFeedId(`0x0003${'ab'.repeat(30)}`);
  schemaVersionOf(feedId);
  for (const nibble of ['0', '1', '2']) timeResolutionOf(`0x${nibble}`);
  try {
    parseFeedId('0x');
  } catch {}
});
