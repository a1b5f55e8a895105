// What changed about public streams and signer sets, from the times that their records have, for /status.json: the last 30 days, and what is expected
// in the next 90.
import { type Body, dayMs } from '@sealpost/protocol';
import type { AdminSnapshot } from '../store/admin-snapshot.ts';

type Change = Body<'Change'>;

const pastMs = 30 * dayMs;
const aheadMs = 90 * dayMs;
/** Of each kind: a catalog of 2,000 streams that was added at once shall not hide the rest. */
const perKindMax = 10;

/** The changes, latest first; what is expected comes before what has happened. */
export function recentChanges({ streams, signerSets }: AdminSnapshot, nowMs: number): readonly Change[] {
  const found = new Map<Change['kind'], Change[]>();
  const add = (kind: Change['kind'], at: string | null, subject: Omit<Change, 'kind' | 'at'>): void => {
    const ms = at === null ? Number.NaN : Date.parse(at);
    if (at === null || !(ms >= nowMs - pastMs && ms <= nowMs + aheadMs)) return;
    const known = found.get(kind);
    if (known === undefined) found.set(kind, [{ kind, at, ...subject }]);
    else known.push({ kind, at, ...subject });
  };
  for (const { feedId: feedID, name, hidden, ...stream } of streams.values()) {
    if (hidden) continue;
    add('stream_added', stream.createdAt, { feedID, name });
    add('stream_decommissioned', stream.decommissionedAt, { feedID, name });
    if (stream.status !== 'decommissioned')
      add('decommission_expected', stream.expectedDecommissionAt, { feedID, name });
  }
  for (const { configDigest, addedAt, retiredAt } of signerSets.values()) {
    add('signer_set_added', addedAt, { configDigest });
    add('signer_set_retired', retiredAt, { configDigest });
  }
  const nearest = (a: Change, b: Change): number => distance(a, nowMs) - distance(b, nowMs);
  return [...found.values()]
    .flatMap((changes) => changes.sort(nearest).slice(0, perKindMax))
    .sort((a, b) => Date.parse(b.at) - Date.parse(a.at));
}

const distance = ({ at }: Change, nowMs: number): number => Math.abs(Date.parse(at) - nowMs);
