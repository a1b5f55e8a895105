// What pointer, keys and buttons do to the chart.
import type { Router } from '../../state/router.ts';
import { reportHref } from '../../state/router.ts';
import { type Bar, barAfter, edgesOf } from './bars.ts';
import { type ChartView, followView, panView, viewOf, zoomView } from './chart-view.ts';
import type { ChartModel } from './model.ts';

/** What a click on a bar does. */
export type BarAction = 'open' | 'zoom' | undefined;

/** A report opens; a candle of several reports is zoomed into. */
export function actionOf(bar: Bar | undefined): BarAction {
  if (bar === undefined || bar.kind === 'gap') return undefined;
  return bar.kind === 'report' || bar.endMs - bar.startMs <= 1_000 ? 'open' : 'zoom';
}

export type ChartActions = ReturnType<typeof createChartActions>;

/** Bars that Shift and an arrow key move by. */
const barsPerLeap = 10;

const milliseconds = 1_000;

/** `writeAddress` is called before the page is left, so that going back shows the same view. */
export function createChartActions(
  model: ChartModel,
  {
    feedId,
    router,
    writeAddress,
  }: { readonly feedId: string; readonly router: Router; readonly writeAddress: () => void },
) {
  const change = (next: (view: ChartView, now: number) => ChartView): void => {
    model.view.value = next(model.view.peek(), model.now.peek());
  };
  const msAt = (share: number): number => {
    const { from, to } = model.window.peek();
    return (from + (to - from) * share) * milliseconds;
  };
  /** Where the crosshair is in view. */
  const crosshairShare = (): number | undefined => {
    const [bar, { from, to }] = [model.crosshair.peek(), model.window.peek()];
    if (bar === undefined) return undefined;
    return Math.min(1, Math.max(0, ((bar.startMs + bar.endMs) / 2 / milliseconds - from) / (to - from)));
  };
  /** Points at a bar, and moves the view if it is outside. */
  const pointAt = (bar: Bar): void => {
    model.point(bar.startMs);
    const { from, to } = model.window.peek();
    const [before, after] = [from - bar.startMs / milliseconds, bar.endMs / milliseconds - to];
    if (before > 0) change((view, now) => panView(view, -before, now));
    else if (after > 0) change((view, now) => panView(view, after, now));
  };
  const edge = (which: 'first' | 'last'): void => {
    const [bars, { from, to }] = [model.bars.peek(), model.window.peek()];
    const found = bars === undefined ? undefined : edgesOf(bars, from * milliseconds, to * milliseconds);
    if (found !== undefined) pointAt(found[which]);
  };
  const pan = (share: number): void => change((view, now) => panView(view, view.seconds * share, now));
  const zoom = (factor: number, share = crosshairShare()): void =>
    change((view, now) => zoomView(view, factor, now, share));
  return {
    pan,
    zoom,
    edge,
    follow: (seconds?: number) => {
      model.release();
      change((view) => followView(view, seconds));
    },
    set: (part: Partial<Pick<ChartView, 'kind' | 'compare'>>) => change((view) => ({ ...view, ...part })),
    /** This second in the middle, or as close to it as time allows. */
    showSecond: (second: number) => {
      model.release();
      change((view, now) => viewOf(view, { from: second - view.seconds / 2, to: second + view.seconds / 2 }, now));
    },
    point: (share: number) => model.point(msAt(share)),
    release: model.release,
    /** Moves the crosshair by bars; begins at the newest one in view. */
    step: (count: -1 | 1, isLeap: boolean) => {
      const [bar, bars] = [model.crosshair.peek(), model.bars.peek()];
      if (bar === undefined || bars === undefined) edge('last');
      else pointAt(barAfter(bars, bar, isLeap ? count * barsPerLeap : count));
    },
    /** Opens the report that is pointed at, or zooms into the candle. */
    open: () => {
      const bar = model.crosshair.peek();
      const action = actionOf(bar);
      if (bar === undefined || action === undefined) return;
      if (action === 'zoom') {
        model.release();
        const [from, to] = [bar.startMs / milliseconds, bar.endMs / milliseconds];
        change((view, now) => viewOf(view, { from, to }, now));
        return;
      }
      writeAddress();
      const second = bar.kind === 'report' ? bar.span.timestamp : bar.startMs / milliseconds;
      router.go(reportHref(feedId, second));
    },
  };
}
