import { expect, test } from 'vitest';
import { testStream } from '../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../tests/support/signed-reports.ts';
import type { AdminSnapshot } from '../store/admin-snapshot.ts';
import { recentChanges } from './recent-changes.ts';

const { signerSets } = await createSignedReports();
const [signerSet] = [...signerSets.values()];
const nowMs = Date.parse('2026-06-01T00:00:00Z');
const old = '2025-01-01T00:00:00.000000Z';

const snapshot = (
  streams: readonly ReturnType<typeof testStream>[],
  sets: readonly { readonly addedAt: string; readonly retiredAt: string | null }[] = [],
): AdminSnapshot => ({
  streams: new Map(streams.map((stream) => [stream.feedId, { ...stream, name: stream.feedId.slice(-1) }])),
  signerSets: new Map(
    sets.map((times, i) => [
      `0x${i}`,
      { ...(signerSet as NonNullable<typeof signerSet>), ...times, configDigest: `0x${i}` },
    ]), // there is one
  ),
  accounts: new Map(),
});

test('changes: streams and signer sets, latest first, and what is expected before the rest', () => {
  const found = recentChanges(
    snapshot(
      [
        testStream(secondStream(1), { createdAt: '2026-05-30T00:00:00.000000Z' }),
        testStream(secondStream(2), { createdAt: old, expectedDecommissionAt: '2026-07-01T00:00:00.000000Z' }),
        testStream(secondStream(3), {
          createdAt: old,
          status: 'decommissioned',
          expectedDecommissionAt: '2026-05-20T00:00:00.000000Z',
          decommissionedAt: '2026-05-21T00:00:00.000000Z',
        }),
        testStream(secondStream(4), { createdAt: '2026-05-31T00:00:00.000000Z', hidden: true }),
        testStream(secondStream(5), { createdAt: old, expectedDecommissionAt: '2030-01-01T00:00:00.000000Z' }),
      ],
      [
        { addedAt: old, retiredAt: '2026-05-29T00:00:00.000000Z' },
        { addedAt: '2026-05-28T00:00:00.000000Z', retiredAt: null },
      ],
    ),
    nowMs,
  );
  expect(found.map(({ at, kind, name, configDigest }) => [at.slice(5, 10), kind, name ?? configDigest])).toEqual([
    ['07-01', 'decommission_expected', '2'],
    ['05-30', 'stream_added', '1'],
    ['05-29', 'signer_set_retired', '0x0'],
    ['05-28', 'signer_set_added', '0x1'],
    ['05-21', 'stream_decommissioned', '3'],
  ]);
});

test('changes: a whole catalog that is added at once leaves room for the rest', () => {
  const streams = Array.from({ length: 15 }, (_, i) =>
    testStream(secondStream(i), { createdAt: `2026-05-${10 + i}T00:00:00.000000Z` }),
  );
  const found = recentChanges(snapshot(streams, [{ addedAt: '2026-05-02T12:00:00.000000Z', retiredAt: null }]), nowMs);
  expect(found).toHaveLength(11);
  expect([found[0]?.at.slice(0, 10), found.at(-1)?.kind]).toEqual(['2026-05-24', 'signer_set_added']);
});
