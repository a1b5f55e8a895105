// One uninterrupted run of a mirror: reports of the source become lines for the target, in order, and count as copied when the target has
// acknowledged them. The next one resumes after the newest stored one.
import { setTimeout } from 'node:timers/promises';
import type { Client, SealpostError } from '@sealpost/client';
import { type FeedId, parseFeedId, type ReportJson } from '@sealpost/protocol';
import type { RejectionCode } from '@sealpost/server/ingest/rejections';
import { mayPass } from '@sealpost/server/ingest/rejections';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { StreamSpan } from './pages.ts';
import { readSource, type SourceBatch, type SourceParts } from './source.ts';
import type { MirrorTarget } from './target.ts';

/** What a session found out about streams, for the next one. */
export type SessionFindings = {
  /** The target acknowledged a report of a stream, and all before it that this session read. */
  readonly copied: (feedId: FeedId, report: ReportJson) => void;
  /** The target rejects the reports of a stream until something is changed there. */
  readonly blocked: (feedId: FeedId, code: RejectionCode, message: string) => void;
  /** The target rejected one report for good. */
  readonly rejected: (feedId: FeedId, code: RejectionCode, message: string) => void;
  /** The source rejects requests for a stream. */
  readonly refused: (feedId: FeedId, error: SealpostError) => void;
};

export type SessionParts = {
  readonly client: Client;
  readonly target: MirrorTarget;
  readonly live: SourceParts['live'];
  readonly nowMs: () => number;
  readonly warn: (text: string) => void;
  readonly findings: SessionFindings;
  /** Stops reading; what was sent is still acknowledged. */
  readonly stop: AbortController;
  /** A target that acknowledges nothing for so long is given up; 30 s unless given. */
  readonly silenceMs?: number;
};

/** Reports sent and not acknowledged: more wait here. */
const sentMax = 4_096;
const silenceMsDefault = 30_000;

/**
 * Copies until stopped, or to the end of the spans where one has an end; ends once everything that was sent is acknowledged. Returns true when
 * it was not stopped.
 */
export async function* runSession(
  spans: readonly StreamSpan[],
  { client, target, live, nowMs, warn, findings, stop, silenceMs = silenceMsDefault }: SessionParts,
): AsyncGenerator<readonly LineResult[], boolean> {
  const sent = createSent();
  const silence = new AbortController();
  const watch = setInterval(
    () => {
      if (sent.waitingMs() > silenceMs) silence.abort();
    },
    Math.min(1_000, silenceMs),
  );
  const blocked = new Set<string>();
  const settle = (result: LineResult): void => {
    const report = sent.take();
    const feedId = parseFeedId(report.feedID);
    const { code, message } = result;
    // The stream waits, so that no report is skipped.
    if (code !== null && mayPass(code)) {
      if (!blocked.has(feedId)) findings.blocked(feedId, code, message ?? '');
      blocked.add(feedId);
      stop.abort();
    } else if (!blocked.has(feedId)) findings.copied(feedId, report);
    if (code !== null && !mayPass(code)) findings.rejected(feedId, code, message ?? '');
  };
  const sleep = (ms: number) => sleepUntil(ms, stop.signal);
  const batches = readSource(spans, { client, signal: stop.signal, nowMs, sleep, live, warn });
  try {
    for await (const results of target.send(toLines(batches, sent, findings, stop.signal), silence.signal)) {
      for (const result of results) settle(result);
      yield results;
    }
    return !stop.signal.aborted;
  } finally {
    stop.abort();
    clearInterval(watch);
    sent.close();
  }
}

/** Waits; resolves early when the signal is aborted. */
export const sleepUntil = (ms: number, signal: AbortSignal): Promise<void> =>
  setTimeout(ms, undefined, { signal }).catch(() => {});

/** Reports on their way, oldest first. */
const createSent = () => {
  let reports: ReportJson[] = [];
  let taken = 0;
  let isClosed = false;
  let movedMs = performance.now();
  let wake = (): void => {};
  const count = () => reports.length - taken;
  return {
    add: (more: readonly ReportJson[]): void => {
      if (count() === 0) movedMs = performance.now();
      reports = [...reports.slice(taken), ...more];
      taken = 0;
    },
    take: (): ReportJson => {
      movedMs = performance.now();
      const report = reports[taken];
      if (report === undefined) throw new Error('The target acknowledged a report that was not sent.');
      taken += 1;
      if (count() < sentMax) wake();
      return report;
    },
    /** How long the oldest has waited since anything was acknowledged. */
    waitingMs: () => (count() === 0 ? 0 : performance.now() - movedMs),
    /** Resolves when fewer than the most are on their way, or it is closed. */
    room: () =>
      new Promise<void>((resolve) => {
        wake = resolve;
        if (isClosed || count() < sentMax) resolve();
      }),
    close: (): void => {
      isClosed = true;
      wake();
    },
  };
};

type Sent = ReturnType<typeof createSent>;

/** Lines for the target, a chunk for each batch. */
async function* toLines(
  batches: AsyncGenerator<SourceBatch>,
  sent: Sent,
  findings: SessionFindings,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  for await (const { reports, refusal } of batches) {
    if (refusal !== undefined) findings.refused(refusal.feedId, refusal.error);
    await sent.room();
    if (signal.aborted) return;
    sent.add(reports);
    if (reports.length > 0) yield Buffer.from(reports.map((report) => `${JSON.stringify(report)}\n`).join(''));
  }
}
