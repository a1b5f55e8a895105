// What a node says of itself: the checks of /readyz, what is degraded, and the readings of its metrics.
import { type Readings, readyMaxMs } from '../observe/metrics.ts';
import type { TroubleWatch } from '../observe/troubles.ts';
import { findReasons, type OpsOptions } from '../ops/ops.ts';
import { lateReason, readFreshness, type Silence, silenceOf } from '../store/freshness.ts';
import type { Damage, Store, WritingPart } from '../store/store.ts';
import type { PublicListener } from './api-listener.ts';
import type { PrivateListeners } from './private-listener.ts';
import type { WritePath } from './write-path.ts';

/** What of a node is open so far. */
export type OpenedParts = {
  write?: WritePath;
  publicListener?: PublicListener;
  privateListeners?: PrivateListeners;
  checks?: OpsOptions['checks'];
};

/** The checks of /readyz. */
export const checksOf = (
  write: WritePath,
  publicListener: PublicListener,
  following: TroubleWatch,
  reportNowMs: () => number,
): OpsOptions['checks'] => ({
  store: async () => {
    await write.store.reports.position();
    // What workers serve is as new as what they read themselves.
    return publicListener.live === undefined ? undefined : following.describe()[0];
  },
  writing: () => describeStops(write.store, ['reports'])[0],
  ingest: async () =>
    lateReason(await readFreshness(write.store.reports, write.view.current().streams.values(), reportNowMs())),
  workers: publicListener.check,
});

/** What does not work, though the node serves. */
export function describeDegradation(
  store: Store,
  publicListener: PublicListener,
  following: TroubleWatch,
): readonly string[] {
  const all = new Map([...store.damage(), ...publicListener.damage()].map((one) => [`${one.table} ${one.key}`, one]));
  const stops = describeStops(store, ['administration']);
  const behind = publicListener.live === undefined ? following.describe() : [];
  return [...stops, ...behind, ...describeDamage([...all.values()]), ...publicListener.degraded()];
}

/** Damaged records, the first few by name. One in a stream is no reason to take a node away from all others. */
const describeDamage = (damage: readonly Damage[]): readonly string[] => {
  const named = damage.slice(0, 5).map(({ table, key, reason }) => `store: ${table} ${key}: ${reason}`);
  return damage.length > named.length ? [...named, `store: ${damage.length} damaged records in all`] : named;
};

/** Why a part of the store cannot be written to. Without its administrative part everything is served, and only counts wait. */
const describeStops = (store: Store, parts: readonly WritingPart[]): readonly string[] =>
  store
    .stops()
    .flatMap(({ part, code, reason }) =>
      parts.includes(part) ? [`writing to ${part} has stopped (${code}): ${reason}`] : [],
    );

export const createReadings = (parts: OpenedParts, reportNowMs: () => number): Readings => ({
  activeRequests: () => parts.publicListener?.activeRequests() ?? 0,
  silences: () => silencesOf(opened(parts.write), reportNowMs()),
  isReady: async () => (await findReasons(opened(parts.checks), readyMaxMs)).length === 0,
  certificateEndMs: () =>
    Math.min(
      ...[parts.publicListener, parts.privateListeners].map(
        (part) => part?.certificateEndMs() ?? Number.POSITIVE_INFINITY,
      ),
    ),
  storeMapBytes: async () => (await parts.write?.store.reports.stats())?.fileBytes ?? 0,
});

/** A reading of what there is not, or not yet, has no value. */
const opened = <T>(part: T | undefined): T => {
  if (part === undefined) throw new Error('There is nothing to read.');
  return part;
};

function* silencesOf({ store, view }: WritePath, nowMs: number): Generator<Silence> {
  for (const stream of view.current().streams.values()) {
    const silence = stream.status === 'live' ? silenceOf(store.reports, stream, nowMs) : undefined;
    if (silence !== undefined) yield silence;
  }
}
