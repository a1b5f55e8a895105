// The reports of a stream's last five minutes, each once and in order, with live ones added.
import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Explorer } from '../state/explorer.ts';
import { reportsSecondsMax } from './chart/resolution.ts';
import { addSpans, type ListedSpan, spanOf } from './chart-spans.ts';

/** A minute longer than the chart needs, so that nothing disappears from it while older reports are loading. */
const historySeconds = reportsSecondsMax + 60;
/** Past reports arrive by the hundred, and live ones up to 25 times a second: they are added, and drawn, in batches. */
const gatherMs = 200;

/** Keeps the history of a stream while a component is shown; empty while signed out, and without a stream. */
export function useHistory(
  { live, clock, session }: Pick<Explorer, 'live' | 'clock' | 'session'>,
  feedId: string | undefined,
): ReadonlySignal<readonly ListedSpan[]> {
  const spans = useMemo(() => signal<readonly ListedSpan[]>([]), []);
  const userId = session.userId.value;
  useEffect(() => {
    if (feedId === undefined) return undefined;
    let waiting: ListedSpan[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): void => {
      timer = undefined;
      spans.value = addSpans(spans.value, waiting, clock.nowMs.peek() - historySeconds * 1_000);
      waiting = [];
    };
    const stop = live.watch(
      [feedId],
      (report) => {
        waiting.push(spanOf(report));
        timer ??= setTimeout(flush, gatherMs);
      },
      Math.floor(clock.nowMs.peek() / 1_000) - reportsSecondsMax,
    );
    return () => {
      stop();
      clearTimeout(timer);
      spans.value = [];
    };
  }, [feedId, userId]);
  return spans;
}
