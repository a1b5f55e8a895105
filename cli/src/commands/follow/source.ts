// The reports of another server, in order within each stream: what is far behind page by page, then live, where the client falls back to polling by
// itself; page by page from then on if the server rejects live delivery of these streams (D103).
import { type Client, SealpostError } from '@sealpost/client';
import type { FeedId, ReportJson } from '@sealpost/protocol';
import { type PageRead, readPages, type StreamSpan, startAfter } from './pages.ts';

/** Reports in order of arrival, or a stream that the server rejects. */
export type SourceBatch = {
  readonly reports: readonly ReportJson[];
  readonly refusal?: { readonly feedId: FeedId; readonly error: SealpostError };
};

/** What is known about live delivery, kept across sessions. */
export type LiveDelivery = {
  /** It was rejected, and is not requested again. */
  isRefused: boolean;
  /** The error that it ended with for good, after it had been live. Pages of every stream are read next: they show which one is rejected. */
  ended: SealpostError | undefined;
};

export type SourceParts = {
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  readonly sleep: (ms: number) => Promise<void>;
  readonly live: LiveDelivery;
  readonly warn: (text: string) => void;
};

/** Streams that are further behind are read in pages first; the live stream reads the rest, one page for each. */
const behindMaxSeconds = 900;
/** Reports of the live stream that wait here, and in one batch. */
const queueMax = 4_096;
const batchMax = 1_000;
const pollMinMs = 1_000;
/** Streams polled per second. */
const pollsPerSecond = 8;

/** Reads streams until the signal is aborted, or once to the end of each span where one has an end. */
export async function* readSource(spans: readonly StreamSpan[], parts: SourceParts): AsyncGenerator<SourceBatch> {
  const { client, signal, nowMs, sleep, live, warn } = parts;
  const starts = new Map(spans.map(({ feedId, start }) => [feedId, start]));
  const pages = {
    client,
    signal,
    sleep,
    onGap: (feedId: FeedId, from: number, to: number) => warn(describeGap(feedId, from, to)),
    onTrouble: (error: SealpostError) => warn(`${error.message} Retrying.`),
  };
  const note = ({ feedId, reports, refusal }: PageRead): SourceBatch => {
    if (refusal !== undefined) starts.delete(feedId);
    else starts.set(feedId, startAfter(feedId, reports, starts.get(feedId) ?? 0));
    return { reports, ...(refusal && { refusal: { feedId, error: refusal } }) };
  };
  const nowSeconds = nowMs() / 1_000;
  const isBehind = ({ start, until }: StreamSpan) =>
    live.ended !== undefined || until !== null || start < nowSeconds - behindMaxSeconds;
  for await (const read of readPages(spans.filter(isBehind), pages)) yield note(read);
  if (signal.aborted) return;
  live.ended = undefined;
  if (starts.size === 0 || spans.some(({ until }) => until !== null)) return;
  if (!live.isRefused) {
    yield* readLive(starts, parts);
    if (signal.aborted || !live.isRefused) return;
  }
  while (!signal.aborted) {
    const left = [...starts].map(([feedId, start]): StreamSpan => ({ feedId, start, until: null }));
    for await (const read of readPages(left, pages)) yield note(read);
    await sleep(Math.max(pollMinMs, (1_000 * starts.size) / pollsPerSecond));
  }
}

const describeGap = (feedId: string, from: number, to: number): string =>
  `${feedId}: the server no longer has reports from ${from} to before ${to}; they are not copied.`;

/** Live reports; returns when the server rejects live delivery, and sets `live.ended` if it was live before, else `live.isRefused`. */
async function* readLive(starts: Map<FeedId, number>, parts: SourceParts): AsyncGenerator<SourceBatch> {
  const { client, signal, live, warn } = parts;
  let wasLive = false;
  const reports = client.stream([...starts.keys()], {
    from: Object.fromEntries(starts),
    queueMax,
    signal,
    onState: ({ phase }) => {
      wasLive ||= phase === 'live';
    },
    onGap: ({ feedId, from, to }) => warn(describeGap(feedId, from, to)),
  });
  try {
    for await (const batch of gather(reports)) {
      for (const report of batch) starts.set(report.feedID as FeedId, startAfter(report.feedID as FeedId, [report], 0)); // one of those asked for
      yield { reports: batch };
    }
  } catch (error) {
    if (!(error instanceof SealpostError) || error.code === 'unauthorized') throw error;
    if (wasLive) {
      live.ended = error;
      return;
    }
    live.isRefused = true;
    warn(`Live delivery was rejected (${error.message}) Polling pages instead.`);
  } finally {
    reports.close();
  }
}

/** Reports that are there already, together. */
async function* gather(reports: AsyncIterator<ReportJson, undefined>): AsyncGenerator<readonly ReportJson[]> {
  let next = reports.next();
  for (let isOver = false; !isOver; ) {
    const first = await next;
    if (first.done) return;
    const batch = [first.value];
    next = reports.next();
    while (batch.length < batchMax) {
      const now = new Promise<undefined>((resolve) => setImmediate(resolve, undefined));
      const more = await Promise.race([next.catch(() => undefined), now]); // a failure is thrown by the next round
      if (more === undefined) break;
      isOver = more.done === true;
      if (more.done) break;
      batch.push(more.value);
      next = reports.next();
    }
    next.catch(() => {}); // it may fail while this batch is being stored; the next round throws it
    yield batch;
  }
}
