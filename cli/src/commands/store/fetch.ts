// Fetches the reports that a store lacks from another deployment: the gaps of streams, every quorum verified against the signer sets of the store,
// retired ones included.
import type { Client } from '@sealpost/client';
import { type FeedId, secondsMax, timeResolutionOf } from '@sealpost/protocol';
import { openVerifier, type Verifier } from '@sealpost/server/ingest/verifier';
import { windowsTouching } from '@sealpost/server/store/coverage';
import type { NewReport, ReportStore, Store } from '@sealpost/server/store/store';
import { type PageRead, readPages, type StreamSpan } from '../follow/pages.ts';
import { sleepUntil } from '../follow/session.ts';

/** A time range in which a stream has no report, both ends included; null is before its first or after its newest report. */
export type Gap = { readonly feedId: FeedId; readonly fromMs: number | null; readonly toMs: number | null };

export type Fetched = {
  /** Reports that are stored now and were not before. */
  readonly stored: number;
  /** Reports of the other deployment that do not verify, or do not fit. */
  readonly rejected: number;
};

export type Source = {
  readonly client: Client;
  readonly url: URL;
  readonly signal: AbortSignal;
  readonly warn: (text: string) => void;
};

/** All gaps of a stream, oldest first: the first is before its oldest report, the last after its newest. */
export async function gapsOf(reports: ReportStore, feedId: FeedId): Promise<readonly Gap[]> {
  const stepMs = timeResolutionOf(feedId) === 'milliseconds' ? 1 : 1_000;
  const gaps: Gap[] = [];
  let fromMs: number | null = null;
  for await (const windows of windowsTouching(reports, feedId, { from: 0, to: secondsMax - 1 }))
    for (const { validFromMs, observationsMs } of windows) {
      if (fromMs === null || validFromMs > fromMs) gaps.push({ feedId, fromMs, toMs: validFromMs - stepMs });
      fromMs = observationsMs + stepMs;
    }
  return [...gaps, { feedId, fromMs, toMs: null }];
}

/** Is a moment in a gap? */
export const isWithin = ({ fromMs, toMs }: Gap, ms: number): boolean => (fromMs ?? 0) <= ms && ms <= (toMs ?? ms);

/** Gaps that are closer are read as one: a page has 1,000 reports. */
const joinedSeconds = 100;

/** What to ask for, oldest first within each stream. */
const spansOf = (gaps: readonly Gap[]): readonly StreamSpan[] => {
  const spans: { feedId: FeedId; start: number; until: number | null }[] = [];
  for (const { feedId, fromMs, toMs } of gaps) {
    const start = Math.floor((fromMs ?? 0) / 1_000);
    const until = toMs === null ? null : Math.floor(toMs / 1_000) + 1;
    const last = spans.at(-1);
    const isClose = last?.feedId === feedId && last.until !== null && start - last.until < joinedSeconds;
    if (isClose) last.until = until;
    else spans.push({ feedId, start, until });
  }
  return spans;
};

/** Fetches gaps; resolves when each was read to its end, or rejected. */
export async function fetchGaps(
  { client, url, signal, warn }: Source,
  store: Store,
  verifierThreads: number,
  gaps: readonly Gap[],
  onProgress: (reports: number) => void,
): Promise<Fetched> {
  const verifier = openVerifier(verifierThreads);
  const total = { stored: 0, rejected: 0 };
  try {
    const sets = await store.admin.list('signerSet');
    verifier.use(new Map(sets.map((set) => [set.configDigest, set])));
    const pages = readPages(spansOf(gaps), {
      client,
      signal,
      sleep: (ms) => sleepUntil(ms, signal),
      onGap: (feedId, from, to) => warn(`${url.host} has no reports of ${feedId} from ${from} to before ${to}.`),
      onTrouble: (error) => warn(`${error.message} Retrying.`),
    });
    for await (const page of pages) {
      if (page.refusal !== undefined) warn(`${url.host} rejects ${page.feedId}: ${page.refusal.message}`);
      await storePage(store.reports, verifier, page, total);
      onProgress(total.stored);
    }
    signal.throwIfAborted();
    return total;
  } finally {
    await verifier.close();
  }
}

const storePage = async (
  target: ReportStore,
  verifier: Verifier,
  { feedId, reports }: PageRead,
  total: { stored: number; rejected: number },
): Promise<void> => {
  const verdicts = await verifier.verify(reports.map(({ fullReport }) => fullReport));
  const batch = verdicts.flatMap(({ verified }, i): readonly NewReport[] => {
    if (verified?.feedId !== feedId) return [];
    const { validFromMs, observationsMs, price } = verified;
    const fullReport = Buffer.from(reports[i]?.fullReport.slice(2) ?? '', 'hex');
    return [{ feedId, validFromMs, observationsMs, price, fullReport }];
  });
  const outcomes = await target.append(batch);
  const notStored = outcomes.filter((outcome) => outcome === 'conflict' || outcome === 'overlap').length;
  total.stored += outcomes.filter((outcome) => outcome === 'stored').length;
  total.rejected += reports.length - batch.length + notStored;
};
