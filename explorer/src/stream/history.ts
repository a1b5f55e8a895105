// The reports of a stream's last five minutes, each once and in order, with live ones added.
import { type ReadonlySignal, signal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import type { Explorer } from '../state/explorer.ts';
import { addSpans, ranges, type Span, spanOf } from './chart-spans.ts';

/** The longest range that is drawn from reports. */
const keptSeconds = ranges['5m'].seconds;
/** Past reports arrive by the hundred: they are added in batches. */
const gatherMs = 100;

/** Keeps the history of a stream while a component is shown; empty while signed out. */
export const useHistory = (
  { live, clock, session }: Pick<Explorer, 'live' | 'clock' | 'session'>,
  feedId: string,
): ReadonlySignal<readonly Span[]> => {
  const spans = useMemo(() => signal<readonly Span[]>([]), [feedId]);
  const userId = session.userId.value;
  useEffect(() => {
    let waiting: Span[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = (): void => {
      timer = undefined;
      spans.value = addSpans(spans.value, waiting, clock.nowMs.peek() - keptSeconds * 1_000);
      waiting = [];
    };
    const stop = live.watch(
      [feedId],
      ({ decoded }) => {
        waiting.push(spanOf(decoded));
        timer ??= setTimeout(flush, gatherMs);
      },
      Math.floor(clock.nowMs.peek() / 1_000) - keptSeconds,
    );
    return () => {
      stop();
      clearTimeout(timer);
      spans.value = [];
    };
  }, [feedId, userId]);
  return spans;
};
