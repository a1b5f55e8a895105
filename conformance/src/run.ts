// A run: measures the clock, makes the selected checks one after the other while live connections collect frames, and looks for extensions.
import type { SignerSets } from '@sealpost/protocol';
import type { Check } from './check.ts';
import { groupOf } from './check.ts';
import { type CheckContext, type CheckRules, createCheckContext } from './check-context.ts';
import { NoAnswerError, type RequestToSend } from './exchange.ts';
import { extensionTable } from './extensions.ts';
import { createPace } from './pace.ts';
import { type Ask, createRequester, type SignHeaders } from './requester.ts';
import { targets } from './sample.ts';
import { MismatchError, SkipError } from './verdict.ts';

export type CheckOutcome = { readonly check: Check; readonly durationMs: number } & (
  | { readonly result: 'passed' }
  | {
      readonly result: 'failed';
      readonly expected: string;
      readonly actual: string;
      readonly request: RequestToSend | undefined;
    }
  | { readonly result: 'skipped'; readonly reason: string }
);

export type ExtensionResult = {
  readonly id: string;
  readonly title: string;
  readonly result: 'present' | 'absent' | 'unknown';
};

export type RunOptions = {
  readonly url: URL;
  readonly wsUrl: URL;
  readonly sign: SignHeaders;
  readonly signAs: (userId: string) => SignHeaders;
  readonly userAgent: string;
  readonly nowMs: () => number;
  readonly rules: CheckRules;
  readonly requestsPerSecond: number;
  /** Of one request. */
  readonly timeoutMs: number;
  /** Of the whole run: checks that have not begun by then are skipped. */
  readonly timeLimitMs: number;
  readonly feedIds: readonly string[];
  readonly hiddenIds: readonly string[];
  readonly signers: (ask: Ask) => Promise<SignerSets>;
  readonly checks: readonly Check[];
  /** Also look for extensions. */
  readonly withExtensions: boolean;
  readonly signal: AbortSignal;
  /** Called after each check with the number of those that are done. */
  readonly onResult: (done: number) => void;
};

export type RunReport = {
  readonly results: readonly CheckOutcome[];
  readonly extensions: readonly ExtensionResult[];
  readonly requests: number;
  /** Whether any request got an answer. */
  readonly isAnswered: boolean;
  /** Node's code of the first failed connection, if no request was answered. */
  readonly failureCode: string;
  /** Whether every check could be made: neither an outage nor a time or rate limit ended the run early. */
  readonly isComplete: boolean;
};

/** Makes a run. Rejects only if the signal aborts, or on a bug. */
export async function runChecks(options: RunOptions): Promise<RunReport> {
  const { checks, timeLimitMs } = options;
  const over = new AbortController();
  const signal = AbortSignal.any([options.signal, over.signal]);
  const endMs = performance.now() + timeLimitMs;
  const stopped = (): string | undefined =>
    performance.now() > endMs ? `The time limit of ${timeLimitMs / 1_000} s was reached.` : undefined;
  const pace = createPace(options.requestsPerSecond, endMs);
  const requester = createRequester({ ...options, signal, pace, stopped });
  const context = createCheckContext({ ...options, signal, requester, pace });
  const results: CheckOutcome[] = [];
  let live: Promise<void> = Promise.resolve();
  try {
    await measureClock(context, options.nowMs);
    live = startLive(context, checks);
    for (const check of checks) {
      signal.throwIfAborted();
      results.push(await runCheck(check, context));
      options.onResult(results.length);
    }
    const canLook = options.withExtensions && requester.outage() === undefined;
    const extensions = canLook ? await findExtensions(context) : [];
    const { attempts } = requester;
    return {
      results,
      extensions,
      requests: attempts.length,
      isAnswered: attempts.some(({ answer }) => answer !== undefined),
      failureCode: attempts[0]?.failure?.code ?? '',
      isComplete: requester.outage() === undefined && !pace.hasRefused(),
    };
  } finally {
    over.abort();
    context.close();
    await live;
  }
}

/** Offers the server's clock to signing, so that one wrong clock fails one check and not all. */
const measureClock = async ({ ask, requester }: CheckContext, nowMs: () => number): Promise<void> => {
  try {
    const sentMs = nowMs();
    // Signed, because a cache may answer anonymous requests, with an old date.
    const { status, headers, json } = await ask(targets.feeds);
    const dateMs = Date.parse(headers.date ?? '');
    // A Date header has whole seconds, so that it is half a second behind on average.
    if (Number.isFinite(dateMs)) requester.setClockOffset(dateMs + 500 - (sentMs + nowMs()) / 2);
    const { serverTimeMs } = Object(json);
    if (status === 400 && Number.isSafeInteger(serverTimeMs)) requester.setClockOffset(serverTimeMs - nowMs());
  } catch (error) {
    if (!(error instanceof NoAnswerError || error instanceof SkipError)) throw error; // the checks tell
  }
};

/** Opens the shared connections early, so that frames and pings arrive while other checks run. */
const startLive = async ({ watch, sample }: CheckContext, checks: readonly Check[]): Promise<void> => {
  if (!checks.some((check) => ['websocket', 'origins'].includes(groupOf(check)))) return;
  const open = async (): Promise<void> => {
    await sample.streams();
    await Promise.all([watch(1), watch(2)]);
  };
  await open().catch(() => {}); // each check asks for the connection again, and tells
};

const runCheck = async (check: Check, context: CheckContext): Promise<CheckOutcome> => {
  const startedMs = performance.now();
  const end = () => ({ check, durationMs: Math.round(performance.now() - startedMs) });
  try {
    await check.run(context);
    return { ...end(), result: 'passed' };
  } catch (error) {
    if (error instanceof SkipError) return { ...end(), result: 'skipped', reason: error.message };
    if (error instanceof MismatchError)
      return { ...end(), result: 'failed', expected: error.expected, actual: error.actual, request: error.request };
    if (error instanceof NoAnswerError)
      return { ...end(), result: 'failed', expected: 'an answer', actual: error.message, request: error.request };
    throw error;
  }
};

const findExtensions = async (context: CheckContext): Promise<readonly ExtensionResult[]> => {
  const found: ExtensionResult[] = [];
  for (const { id, title, isPresent } of extensionTable) {
    try {
      found.push({ id, title, result: (await isPresent(context)) ? 'present' : 'absent' });
    } catch (error) {
      if (!(error instanceof NoAnswerError || error instanceof SkipError)) throw error;
      found.push({ id, title, result: 'unknown' });
    }
  }
  return found;
};
