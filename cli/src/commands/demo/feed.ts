// Feeds a demo's node from the simulator's thread, and says when the last minutes are stored and when any part of it fails.
import { submitPatiently } from '@sealpost/server/ingest/ingest';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { Node } from '@sealpost/server/node/node';
import { startThread } from '@sealpost/server/runtime/threads';
import { CommandError, exitCodes } from '../../failure.ts';
import { createProgress } from '../../progress.ts';
import type { Session } from '../../session.ts';
import { countReports, cutSpans, findGaps, planPast } from './gaps.ts';
import type { DemoBatch, DemoThreadOptions } from './thread.ts';
import type { DemoWorld } from './world.ts';

export type FeedOptions = {
  readonly session: Session;
  readonly world: DemoWorld;
  readonly pastSeconds: number;
  /** Signed before the feed is ready. */
  readonly recentSeconds: number;
  /** Draws no bar. */
  readonly json: boolean;
};

export type DemoFeed = {
  /** How much of the missing history is stored, 0 to 1; undefined once all of it is. */
  readonly historyLoaded: () => number | undefined;
  /** Resolves once the last minutes are stored. */
  readonly ready: Promise<void>;
  /** Rejects when the simulated network or the store fails; never resolves. */
  readonly failed: Promise<never>;
  readonly stop: () => Promise<void>;
};

const threadOptions = async (
  { write: { store } }: Node,
  { session, world, pastSeconds, recentSeconds }: FeedOptions,
) => {
  const now = Math.floor(session.nowMs() / 1_000);
  const whole = { from: now - pastSeconds, to: now };
  const spans = planPast(await findGaps(store.reports, whole), now);
  return {
    seed: world.seed,
    now,
    recent: cutSpans(spans, { from: now - recentSeconds, to: now }),
    past: cutSpans(spans, { from: whole.from, to: now - recentSeconds - 1 }),
  } satisfies DemoThreadOptions;
};

/** Feeds a node from the simulator's thread. */
export async function startFeed(node: Node, run: FeedOptions): Promise<DemoFeed> {
  const { ingest } = node.write;
  const options = await threadOptions(node, run);
  const thread = startThread('./thread', import.meta.url, options);
  const total = countReports(options.past);
  const bar = createProgress(run.session.stderr);
  const stopping = new AbortController();
  let isReady = (): void => {};
  let fail = (_: unknown): void => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {}); // a failure while stopping is ignored
  let past = 0;
  let isLoading = total > 0;
  const fraction = (): number => Math.min(0.99, past / total); // the total is an estimate
  let underWay: Promise<unknown> = Promise.resolve();
  // Until it is ready, a failure of the store is one of the start.
  const submit = (part: DemoBatch['part'], lines: readonly string[]): Promise<readonly LineResult[]> =>
    part === 'recent' ? ingest.submit(lines, 1) : submitPatiently(ingest, lines, stopping.signal);
  const endLoading = (): void => {
    isLoading = false;
    bar.end();
  };
  const take = async ({ part, lines, last }: DemoBatch): Promise<void> => {
    if (lines.length > 0) requireAccepted(await submit(part, lines));
    if (part === 'past') past += lines.length;
    if (part === 'past' && !run.json && !last)
      bar.update({ fraction: fraction(), count: past, label: 'reports of history' });
    if (part === 'past' && last) endLoading();
    if (part === 'recent' && last) isReady();
    thread.postMessage(part);
  };
  thread.on('message', (batch: DemoBatch) => {
    underWay = Promise.all([underWay, take(batch).catch(fail)]);
  });
  thread.on('error', (cause) => fail(networkError(cause.message, cause)));
  thread.on('exit', (code) => fail(networkError(`its thread ended with exit code ${code}.`)));
  const stop = async (): Promise<void> => {
    stopping.abort();
    await thread.terminate();
    await underWay;
  };
  return { historyLoaded: () => (isLoading ? fraction() : undefined), ready, failed, stop };
}

const networkError = (why: string, cause?: Error): CommandError =>
  new CommandError(exitCodes.unavailable, `The simulated network has stopped: ${why}`, { cause });

/** A single report may be late or ahead of the clock; a batch that is rejected as a whole has a cause that does not pass. */
const requireAccepted = (results: readonly LineResult[]): void => {
  const [first] = results;
  if (first === undefined || results.some(({ result }) => result !== 'refused')) return;
  throw new CommandError(
    exitCodes.refused,
    `The store rejected all ${results.length} simulated reports (${first.code}: ${first.message}). Delete the demo's folder to start over.`,
  );
};
