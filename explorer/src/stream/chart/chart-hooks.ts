// Connects the chart's state with the page: the stream's reports, the address, the canvas, pointer and keys.
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Explorer, useExplorer } from '../../state/explorer.ts';
import { isOldPrice } from '../../ui/price-age.ts';
import type { Theme } from '../../ui/theme.ts';
import { type ListedSpan, pricedOf, toCoordinate } from '../chart-spans.ts';
import { useHistory } from '../history.ts';
import { type ChartActions, createChartActions } from './actions.ts';
import { type Bar, pointsOf, priceOf } from './bars.ts';
import type { ChartCanvas, ChartColors } from './canvas.ts';
import { followAddress } from './chart-address.ts';
import { comparedIn, parseView } from './chart-view.ts';
import { listenToGestures } from './gestures.ts';
import { runKey } from './keys.ts';
import type { ChartInput } from './legend.tsx';
import { type ChartModel, createChartModel } from './model.ts';
import { type ChartWindow, stepOf } from './resolution.ts';
import { createViewed, type ViewedRange } from './viewed.ts';

export type StreamChart = {
  readonly model: ChartModel;
  readonly actions: ChartActions;
  readonly viewed: ReadonlySignal<ViewedRange>;
};

export const colorsOf = ({ color }: Theme): ChartColors => ({
  text: color('--muted'),
  line: color('--accent'),
  other: color('--chart-other'),
  grid: color('--line'),
  crosshair: color('--line-strong'),
  label: color('--line-strong'),
  band: color('--chart-band'),
  bandEdge: color('--chart-band-edge'),
  up: color('--ok-fill'),
  down: color('--bad-fill'),
});

/** The chart of a stream, its view kept in the address. For one stream: another one needs another component. */
export function useStreamChart(feedId: string, history: ReadonlySignal<readonly ListedSpan[]>): StreamChart {
  const explorer = useExplorer();
  const { session, router, clock, catalog } = explorer;
  const client = session.client.value;
  const view = useMemo(() => signal(parseView(router.address.peek().query)), []);
  const address = useMemo(() => followAddress(view, router, feedId), []);
  const compareId = useMemo(
    () =>
      computed(() => {
        const { value: state } = catalog.state;
        return state.phase === 'ready' ? comparedIn(view.value, state.readable) : undefined;
      }),
    [],
  );
  const comparedHistory = useHistory(explorer, compareId.value);
  const chart = useMemo(() => {
    const spans = computed(() => pricedOf(history.value));
    const comparedSpans = computed(() => pricedOf(comparedHistory.value));
    const nowSeconds = computed(() => Math.floor(clock.nowMs.value / 1_000));
    const model = createChartModel({ client, feedId, nowSeconds, spans, comparedSpans, compareId, view });
    const viewed = createViewed(model, address.settled);
    return { model, viewed, actions: createChartActions(model, { feedId, router, writeAddress: address.write }) };
  }, [client]);
  useEffect(() => chart.model.start(), [chart]);
  useEffect(() => address.follow(), []);
  return chart;
}

/** The canvas once its code is loaded, drawing the model; `null` if loading failed. */
export function useCanvas(model: ChartModel, feedId: string) {
  const explorer = useExplorer();
  const container = useRef<HTMLDivElement>(null);
  const highlight = useRef<HTMLDivElement>(null);
  const [canvas, setCanvas] = useState<ChartCanvas | null | undefined>(undefined);
  useEffect(() => {
    let made: ChartCanvas | undefined;
    let isGone = false;
    explorer.chunks
      .load(() => import('./canvas.ts'))
      .then(
        ({ createChartCanvas }) => {
          if (isGone || container.current === null) return;
          made = createChartCanvas(container.current, colorsOf(explorer.theme));
          setCanvas(made);
        },
        () => setCanvas(null),
      );
    return () => {
      isGone = true;
      made?.remove();
    };
  }, []);
  useEffect(() => {
    if (canvas == null || highlight.current === null) return undefined;
    const stops = [...drawModel(canvas, model, highlight.current), ...drawSettings(canvas, explorer, feedId)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [canvas, model]);
  return { container, highlight, canvas };
}

/** The last price, in the theme's colors, and the times of the axis. */
const drawSettings = (
  canvas: ChartCanvas,
  { theme, live, clock, times }: Explorer,
  feedId: string,
): readonly (() => void)[] => {
  const newest = computed(() => live.latest(feedId).value?.decoded);
  const isOld = computed(
    () =>
      newest.value !== undefined &&
      isOldPrice(clock.nowMs.value - newest.value.observationsMs, live.intervalMs(feedId).value),
  );
  return [
    effect(() => {
      void theme.scheme.value;
      canvas.setColors(colorsOf(theme));
    }),
    effect(() => {
      void times.zone.value;
      canvas.setTimes(times.split);
    }),
    effect(() => {
      void theme.scheme.value;
      canvas.setLastPrice(newest.value === undefined ? undefined : toCoordinate(newest.value.price), isOld.value);
    }),
  ];
};

/** Draws whenever something changes; a pan only moves the window. */
const drawModel = (canvas: ChartCanvas, model: ChartModel, highlight: HTMLElement): readonly (() => void)[] => {
  const drawAs = computed(() => (stepOf(model.resolution.value) === 1 ? 'line' : model.view.value.kind));
  return [
    effect(() => {
      const [bars, compared] = [model.bars.value, model.comparedBars.value];
      const { value: grid } = model.grid;
      const picture = {
        grid,
        points: bars === undefined ? [] : pointsOf(bars, grid),
        compared:
          model.compareId.value === undefined ? undefined : compared === undefined ? [] : pointsOf(compared, grid),
        drawAs: drawAs.value,
      };
      canvas.show(picture, model.window.peek());
    }),
    effect(() => canvas.setWindow(model.window.value)),
    effect(() => drawCrosshair(canvas, model.crosshair.value, model.window.value, highlight)),
  ];
};

const drawCrosshair = (
  canvas: ChartCanvas,
  bar: Bar | undefined,
  { from, to }: ChartWindow,
  highlight: HTMLElement,
): void => {
  highlight.hidden = bar === undefined;
  if (bar === undefined) {
    canvas.setCrosshair(undefined);
    return;
  }
  const x = (ms: number): number => ((ms / 1_000 - from) / (to - from)) * canvas.plotWidth();
  const left = Math.max(0, x(bar.startMs));
  const right = Math.min(canvas.plotWidth(), x(bar.endMs));
  highlight.style.setProperty('--left', `${left}px`);
  highlight.style.setProperty('--width', `${Math.max(1, right - left)}px`);
  const price = priceOf(bar);
  const second = bar.kind === 'report' ? bar.span.timestamp : Math.floor(bar.startMs / 1_000);
  canvas.setCrosshair({ second, price: price === undefined ? undefined : toCoordinate(price) });
};

/** Pointer, wheel and keys on the chart's element. */
export function useGestures(
  { model, actions }: StreamChart,
  container: RefObject<HTMLElement | null>,
  canvas: ChartCanvas | null | undefined,
  onInput: (input: ChartInput) => void,
): void {
  useEffect(() => {
    const element = container.current;
    if (element === null || canvas == null) return undefined;
    const listeners = new AbortController();
    const onKey = (event: KeyboardEvent): void => {
      if (!runKey(actions, event)) return;
      event.preventDefault();
      onInput('keys');
    };
    // A finger has nowhere to leave to: a touch anywhere else lets the chart move on.
    const onTouch = ({ target, pointerType }: PointerEvent): void => {
      if (pointerType === 'touch' && !element.contains(target as Node)) actions.release(); // what is touched is a node
    };
    element.addEventListener('keydown', onKey, { signal: listeners.signal });
    document.addEventListener('pointerdown', onTouch, { signal: listeners.signal });
    const stop = listenToGestures(element, canvas.plotWidth, {
      onPoint: (share) => {
        onInput('pointer');
        actions.point(share);
      },
      onLeave: actions.release,
      onClick: (share, isTouch) => {
        const before = model.crosshair.peek()?.startMs;
        actions.point(share);
        if (isTouch) onInput('touch');
        if (!isTouch || before === model.crosshair.peek()?.startMs) actions.open();
      },
      onPan: (share) => actions.pan(-share),
      onZoom: actions.zoom,
    });
    return () => {
      listeners.abort();
      stop();
    };
  }, [canvas, model, actions]);
}
