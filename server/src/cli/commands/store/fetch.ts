// Fetching lost reports from another deployment into a store: pages of each lost span, every quorum verified against the signer sets of this
// store, retired ones included.
import type { Client } from '@sealpost/client';
import type { FeedId } from '@sealpost/protocol';
import type { Settings } from '../../../config/config.ts';
import { openVerifier, type Verifier } from '../../../ingest/verifier.ts';
import { openStore } from '../../../store/open.ts';
import type { NewReport, Store } from '../../../store/store.ts';
import { type PageRead, readPages } from '../follow/pages.ts';
import { sleepUntil } from '../follow/session.ts';

/** A span of a stream, both ends included. */
export type LostSpan = { readonly feedId: FeedId; readonly fromMs: number; readonly toMs: number };

export type Fetched = {
  /** Reports that are stored now and were not before. */
  readonly stored: number;
  /** Reports of the other deployment that do not verify, or do not fit. */
  readonly rejected: number;
};

type Source = {
  readonly client: Client;
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
};

/** Fetches time ranges; resolves when each was read to its end, or rejected. */
export const fetchLost = async (
  { client, url, signal, warn }: Source,
  { store: storeUrl, verifierThreads }: Settings,
  spans: readonly LostSpan[],
  onProgress: (reports: number) => void,
): Promise<Fetched> => {
  const store = await openStore(storeUrl, 'write', { isCommand: true });
  const verifier = openVerifier(verifierThreads);
  const total = { stored: 0, rejected: 0 };
  try {
    const sets = await store.admin.list('signerSet');
    verifier.use(new Map(sets.map((set) => [set.configDigest, set])));
    const pages = readPages(
      spans.map(({ feedId, fromMs, toMs }) => ({
        feedId,
        start: Math.floor(fromMs / 1_000),
        until: Math.floor(toMs / 1_000) + 1,
      })),
      {
        client,
        signal,
        nowMs: () => performance.now(),
        sleep: async (ms) => void (await sleepUntil(ms, signal)),
        onGap: (feedId, from, to) => warn(`${url.host} has no reports of ${feedId} from ${from} to before ${to}.`),
        onTrouble: (error) => warn(`${error.message} Retrying.`),
      },
    );
    for await (const page of pages) {
      if (page.refusal !== undefined) warn(`${url.host} rejects ${page.feedId}: ${page.refusal.message}`);
      await storePage(store, verifier, page, spans, total);
      onProgress(total.stored);
    }
    signal.throwIfAborted();
    return total;
  } finally {
    await verifier.close();
    await store.close();
  }
};

const storePage = async (
  { reports: target }: Store,
  verifier: Verifier,
  { feedId, reports }: PageRead,
  spans: readonly LostSpan[],
  total: { stored: number; rejected: number },
): Promise<void> => {
  const verdicts = await verifier.verify(reports.map(({ fullReport }) => fullReport));
  const batch = verdicts.flatMap(({ verified }, i): readonly NewReport[] => {
    const isAsked =
      verified?.feedId === feedId &&
      spans.some(
        (span) => span.feedId === feedId && span.fromMs <= verified.observationsMs && verified.validFromMs <= span.toMs,
      );
    if (verified === undefined || !isAsked) {
      total.rejected += verified === undefined ? 1 : 0;
      return [];
    }
    const { validFromMs, observationsMs, price } = verified;
    const fullReport = Buffer.from(reports[i]?.fullReport.slice(2) ?? '', 'hex');
    return [{ feedId, validFromMs, observationsMs, price, fullReport }];
  });
  const outcomes = await target.append(batch);
  total.stored += outcomes.filter((outcome) => outcome === 'stored').length;
  total.rejected += outcomes.filter((outcome) => outcome === 'conflict' || outcome === 'overlap').length;
};
