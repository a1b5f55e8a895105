// Keeps the chart's view and the address the same, in both directions.
import { effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { Router } from '../../state/router.ts';
import { type ChartView, parseView, writeView } from './chart-view.ts';

/** A pan or a zoom is written once it has come to rest. */
const restMs = 250;

/** Reads the address of this stream, and writes it: later, or at once with `write`. */
export function followAddress(view: Signal<ChartView>, router: Router, feedId: string) {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const settled = signal(view.peek());
  let written = writeView(new URLSearchParams(), view.peek()).toString();
  const write = (): void => {
    clearTimeout(timer);
    timer = undefined;
    settled.value = view.peek();
    const text = writeView(new URLSearchParams(), view.peek()).toString();
    if (text === written) return;
    written = text;
    router.setQuery(writeView(router.address.peek().query, view.peek()));
  };
  return {
    write,
    /** The view once it has come to rest. */
    settled: settled as ReadonlySignal<ChartView>, // set above
    /** Until the returned function is called. */
    follow: () => {
      const stops = [
        effect(() => {
          void view.value;
          clearTimeout(timer);
          timer = setTimeout(write, restMs);
        }),
        effect(() => {
          const { route, query } = router.address.value;
          if (route.page !== 'stream' || route.feedId !== feedId) return;
          const next = parseView(query);
          const text = writeView(new URLSearchParams(), next).toString();
          if (text === written) return;
          written = text;
          view.value = next;
        }),
      ];
      return () => {
        clearTimeout(timer);
        for (const stop of stops) stop();
      };
    },
  };
}
