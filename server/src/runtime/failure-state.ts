// Tracks an operation that is repeated while it fails: it counts as failing once no attempt has worked for a while, until one works. Both are reported once.

/** Another cause is news, but not more often than this. */
const newsEveryMs = 60_000;

export type FailureStateOptions<Cause> = {
  /** Failures count once no attempt has worked for this long. */
  readonly graceMs?: number | undefined;
  /** And only after this many attempts. */
  readonly attemptsMin?: number;
  readonly began: (cause: Cause) => void;
  /** It failed again. News is a cause other than the last one that was. */
  readonly continued?: (cause: Cause, isNews: boolean) => void;
  /** With the time since the first failure. */
  readonly ended?: (seconds: number) => void;
  readonly nowMs?: (() => number) | undefined;
};

export type FailureState<Cause> = {
  readonly failed: (cause: Cause) => void;
  readonly worked: () => void;
  /** The newest cause; undefined while it does not count as failing. */
  readonly cause: () => Cause | undefined;
  /** Ignores what follows: an attempt may still be in progress. */
  readonly close: () => void;
};

export function createFailureState<Cause extends string | Error>(
  options: FailureStateOptions<Cause>,
): FailureState<Cause> {
  const { graceMs = 0, attemptsMin = 1, began, continued, ended, nowMs = () => performance.now() } = options;
  let failing: { readonly sinceMs: number; attempts: number } | undefined;
  let current: Cause | undefined;
  let news = { text: '', atMs: 0 };
  let isClosed = false;
  return {
    failed: (cause) => {
      if (isClosed) return;
      failing ??= { sinceMs: nowMs(), attempts: 0 };
      failing.attempts += 1;
      if (failing.attempts < attemptsMin || nowMs() - failing.sinceMs < graceMs) return;
      const hasBegun = current !== undefined;
      current = cause;
      const [text, atMs] = [String(cause), nowMs()];
      const isNews = !hasBegun || (text !== news.text && atMs - news.atMs >= newsEveryMs);
      if (isNews) news = { text, atMs };
      if (hasBegun) continued?.(cause, isNews);
      else began(cause);
    },
    worked: () => {
      if (isClosed) return;
      if (failing !== undefined && current !== undefined) ended?.((nowMs() - failing.sinceMs) / 1_000);
      [failing, current] = [undefined, undefined];
    },
    cause: () => current,
    close: () => {
      isClosed = true;
    },
  };
}
