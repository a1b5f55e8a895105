// The past of many streams over REST: one page at a time of each, a few streams at once, in order within a stream. Pages are read ahead while
// the caller stores the ones before; it holds at most `parallelMax` of them.
import { type Client, type ReportPage, SealpostError } from '@sealpost/client';
import { type FeedId, type ReportJson, secondsMax, timeResolutionOf } from '@sealpost/protocol';
import { backoffMs } from '../../../runtime/backoff.ts';
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
  readonly nowMs: () => number;
  /** Resolves early when the signal is aborted. */
  readonly sleep: (ms: number) => Promise<void>;
  /** Read every stream again after this pause, for good; undefined: read each to its end once. */
  readonly pollMs?: number;
  /** Called where the server no longer has what was asked for. */
  readonly onGap: (feedId: FeedId, from: number, to: number) => void;
  /** Called once when the server fails, with its error. */
  readonly onTrouble: (error: SealpostError) => void;
};

/** Concurrent requests. */
const parallelMax = 4;
/** How often it looks whether a stream is due again. */
const tickMs = 100;
const pauseMinMs = 1_000;
const pauseMaxMs = 30_000;

type Job = {
  readonly feedId: FeedId;
  readonly until: number | null;
  start: number;
  dueMs: number;
  failures: number;
  pages: AsyncIterator<ReportPage, void> | undefined;
};

/** `more`: there is or may be another page. `end`: it was read to its end. `drop`: the server rejects it. */
type Step = { readonly job: Job; readonly read?: PageRead; readonly next: 'more' | 'end' | 'drop' };

/** Reads the spans. Ends when each was read to its end, or the signal is aborted. */
export async function* readPages(spans: readonly StreamSpan[], parts: PagesParts): AsyncGenerator<PageRead> {
  const { signal, nowMs, sleep, pollMs } = parts;
  const waiting = spans.map((span): Job => ({ ...span, dueMs: 0, failures: 0, pages: undefined }));
  const steps = new Map<Job, Promise<Step>>();
  let tick: Promise<void> | undefined;
  const startDue = (): void => {
    for (const job of takeDue(waiting, nowMs(), parallelMax - steps.size)) steps.set(job, readNext(job, parts));
    for (const step of steps.values()) step.catch(() => {}); // it may fail while another one is awaited
  };
  while (!signal.aborted && (waiting.length > 0 || steps.size > 0)) {
    startDue();
    if (waiting.length > 0)
      tick ??= sleep(tickMs).then(() => {
        tick = undefined;
      });
    const step = await Promise.race([...steps.values(), ...(tick === undefined ? [] : [tick])]);
    if (step === undefined) continue;
    const { job, read, next } = step;
    steps.delete(job);
    if (next === 'end' && pollMs !== undefined) job.dueMs = nowMs() + pollMs;
    if (next === 'more' || (next === 'end' && pollMs !== undefined)) waiting.push(job);
    if (read === undefined) continue;
    startDue(); // the next requests go out before this page is stored
    yield read;
  }
}

/** Takes up to `count` jobs that are due, those that wait longest first. */
const takeDue = (waiting: Job[], nowMs: number, count: number): readonly Job[] => {
  const due = waiting.filter((job) => job.dueMs <= nowMs).slice(0, Math.max(0, count));
  for (const job of due) waiting.splice(waiting.indexOf(job), 1);
  return due;
};

/** One page of a stream. Transient failures are retried later, from the same second. */
const readNext = async (job: Job, parts: PagesParts): Promise<Step> => {
  const { client, signal } = parts;
  const { feedId, until } = job;
  if (until !== null && job.start >= until) return { job, next: 'end' };
  const onGap = (from: number, to: number): void => {
    parts.onGap(feedId, from, to);
    job.start = to;
  };
  const to = until === null ? secondsMax : until - 1;
  job.pages ??= readRemotePages(client, feedId, { from: job.start, to, signal }, onGap);
  try {
    const { value, done } = await job.pages.next();
    job.failures = 0;
    if (done || value === undefined) {
      job.pages = undefined;
      return { job, next: 'end' };
    }
    job.start = startAfter(feedId, value.reports, job.start);
    return { job, read: { feedId, reports: value.reports }, next: 'more' };
  } catch (error) {
    job.pages = undefined;
    if (signal.aborted) return { job, next: 'drop' };
    if (!(error instanceof SealpostError)) throw error;
    return recover(job, error, parts);
  }
};

/** The second to read on at, after these reports. */
export const startAfter = (feedId: FeedId, reports: readonly ReportJson[], start: number): number => {
  const last = reports.at(-1)?.observationsTimestamp;
  // A second of a stream that counts milliseconds may have more reports: it is read again, and what is stored is recognized.
  return last === undefined ? start : last + (timeResolutionOf(feedId) === 'milliseconds' ? 0 : 1);
};

const recover = (job: Job, error: SealpostError, parts: PagesParts): Step => {
  if (!error.retryable && error.code !== 'unexpected_answer')
    return { job, read: { feedId: job.feedId, reports: [], refusal: error }, next: 'drop' };
  if (job.failures === 0) parts.onTrouble(error);
  job.failures += 1;
  const pauseMs = backoffMs(job.failures - 1, pauseMinMs, pauseMaxMs);
  job.dueMs = parts.nowMs() + Math.max(pauseMs, 1_000 * Number(error.details.retryAfterSeconds ?? 0));
  return { job, next: 'more' };
};
