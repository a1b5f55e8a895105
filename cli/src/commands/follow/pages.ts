// The past of many streams over REST: one page at a time of each, a few streams at once, in order within a stream. Pages are read ahead while
// the caller stores the ones before; it holds at most `parallelMax` of them.
import { type Client, SealpostError } from '@sealpost/client';
import { backoffMs, type FeedId, type ReportJson, secondsMax, timeResolutionOf } from '@sealpost/protocol';
import { readRemotePages } from '../../remote-client.ts';

/** Where to read a stream: from a second on, to before another or to the newest report. */
export type StreamSpan = { readonly feedId: FeedId; readonly start: number; readonly until: number | null };

/** A page, or why a stream cannot be read. */
export type PageRead = {
  readonly feedId: FeedId;
  readonly reports: readonly ReportJson[];
  readonly refusal?: SealpostError;
};

export type PagesParts = {
  readonly client: Pick<Client, 'pages'>;
  readonly signal: AbortSignal;
  /** Resolves early when the signal is aborted. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Called where the server no longer has what was asked for. */
  readonly onGap: (feedId: FeedId, from: number, to: number) => void;
  /** Called once when the server fails, with its error. */
  readonly onTrouble: (error: SealpostError) => void;
};

/** Concurrent requests. */
const parallelMax = 4;
const pauseMinMs = 1_000;
const pauseMaxMs = 10_000;

/** Reads each span to its end, in turns. Ends early when the signal is aborted. */
export async function* readPages(spans: readonly StreamSpan[], parts: PagesParts): AsyncGenerator<PageRead> {
  const waiting = spans.map((span) => readSpan(span, parts));
  const steps = new Map<
    object,
    Promise<{ readonly reader: (typeof waiting)[0]; readonly read: PageRead | undefined }>
  >();
  const begin = (): void => {
    for (const reader of waiting.splice(0, parallelMax - steps.size)) {
      const step = reader.next().then(({ value }) => ({ reader, read: value ?? undefined }));
      step.catch(() => {}); // it may fail while another one is awaited
      steps.set(reader, step);
    }
  };
  for (begin(); steps.size > 0 && !parts.signal.aborted; begin()) {
    const { reader, read } = await Promise.race(steps.values());
    steps.delete(reader);
    if (read === undefined) continue;
    waiting.push(reader);
    begin(); // the next requests go out before this page is stored
    yield read;
  }
}

/** The pages of one stream, or that it is rejected. After a transient failure another stream has its turn, then this one is read on. */
async function* readSpan({ feedId, start, until }: StreamSpan, parts: PagesParts): AsyncGenerator<PageRead, void> {
  const { client, signal, sleep, onTrouble } = parts;
  const to = until === null ? secondsMax : until - 1;
  const onGap = (from: number, next: number): void => parts.onGap(feedId, from, next);
  for (let [from, failures] = [start, 0]; !signal.aborted; ) {
    try {
      for await (const { reports } of readRemotePages(client, feedId, { from, to, signal }, onGap)) {
        yield { feedId, reports };
        [from, failures] = [startAfter(feedId, reports, from), 0];
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof SealpostError)) throw error;
      const isTransient = error.retryable || error.code === 'unexpected_answer';
      yield { feedId, reports: [], ...(!isTransient && { refusal: error }) };
      if (!isTransient) return;
      if (failures === 0) onTrouble(error);
      const pauseMs = backoffMs(failures, pauseMinMs, pauseMaxMs);
      failures += 1;
      await sleep(Math.max(pauseMs, 1_000 * Number(error.details.retryAfterSeconds ?? 0)));
    }
  }
}

/** The second to read on at, after these reports. */
export function startAfter(feedId: FeedId, reports: readonly ReportJson[], start: number): number {
  const last = reports.at(-1)?.observationsTimestamp;
  // A second of a stream that counts milliseconds may have more reports: it is read again, and what is stored is recognized.
  return last === undefined ? start : last + (timeResolutionOf(feedId) === 'milliseconds' ? 0 : 1);
}
