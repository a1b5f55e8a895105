// GET /status.json: the service's status for everyone, from its public streams only: counting hidden ones would reveal them (D151). No error texts.
// Computed at most once a second.
import type { Body, NetworkType } from '@sealpost/protocol';
import { type Freshness, lateReason, readFreshness } from '../../store/freshness.ts';
import { recentChanges } from '../recent-changes.ts';
import type { Handler, RouteContext } from './context.ts';

export type StatusParts = {
  readonly rules: { readonly network: NetworkType; readonly version: string };
  readonly isDraining: () => boolean;
  readonly monotonicMs: () => number;
  /** Of a program that builds on the service. */
  readonly further?: (() => Partial<Body<'Status'>>) | undefined;
};

const everyMs = 1_000;
const feedIdsMax = 20;

export function createStatusRoute(parts: StatusParts): Handler<'status'> {
  const startedMs = parts.monotonicMs();
  let known: { readonly atMs: number; readonly body: Promise<string> } | undefined;
  return async (_, context) => {
    const nowMs = parts.monotonicMs();
    if (known === undefined || nowMs - known.atMs >= everyMs)
      known = { atMs: nowMs, body: render(parts, context, (nowMs - startedMs) / 1_000) };
    return { status: 200, body: await known.body, cacheControl: 'no-store' };
  };
}

const render = async (
  { rules: { network, version }, isDraining, further }: StatusParts,
  { reports, admin, nowMs, reportNowMs }: RouteContext,
  uptimeSeconds: number,
): Promise<string> => {
  const streams = [...admin.streams.values()].filter(({ hidden }) => !hidden);
  const fresh = await readFreshness(reports, streams, reportNowMs).catch((): undefined => undefined);
  const reasons = reasonsOf(fresh, isDraining());
  const behind = fresh?.behind ?? [];
  const status: Body<'Status'> = {
    ready: reasons.length === 0,
    reasons,
    network,
    version,
    serverTimeMs: nowMs,
    uptimeSeconds: Math.floor(uptimeSeconds),
    ingestLagSeconds: fresh?.lagMs === undefined ? null : fresh.lagMs / 1_000,
    streams: {
      total: streams.length,
      live: streams.filter(({ status }) => status === 'live').length,
      behind: behind.length,
      behindFeedIDs: behind.slice(0, feedIdsMax).map(({ feedId }) => feedId),
    },
    changes: recentChanges(admin, reportNowMs),
    ...further?.(),
  };
  return JSON.stringify(status);
};

// The store's error may name folders, so it is only in the log and on the private listener.
const reasonsOf = (fresh: Freshness | undefined, isDraining: boolean): readonly string[] => {
  const late = fresh && lateReason(fresh);
  return [
    ...(isDraining ? ['draining: this node is shutting down'] : []),
    ...(fresh === undefined ? ['store: it does not answer'] : []),
    ...(late === undefined ? [] : [`ingest: ${late}`]),
  ];
};
