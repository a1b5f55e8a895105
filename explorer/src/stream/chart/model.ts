// The state of a stream's chart: view, data and crosshair. While someone points at a bar, the chart stands still, so that what they aim at is
// what they get: new reports wait, and older data still loads.
import { batch, computed, effect, type ReadonlySignal, type Signal, signal } from '@preact/signals';
import type { Client } from '@sealpost/client';
import type { Span } from '../chart-spans.ts';
import { type Bar, barAt } from './bars.ts';
import { type ChartView, windowOf } from './chart-view.ts';
import { type ChartGrid, gridOf, resolutionOf } from './resolution.ts';
import { createChartSource, createRetention } from './source.ts';

export type ChartModelParts = {
  readonly client: Client;
  readonly feedId: string;
  readonly nowSeconds: ReadonlySignal<number>;
  /** The stream's reports of the last five minutes. */
  readonly spans: ReadonlySignal<readonly Span[]>;
  /** Those of the compared stream. */
  readonly comparedSpans: ReadonlySignal<readonly Span[]>;
  /** The compared stream; undefined without one, and if the user may not read it. */
  readonly compareId: ReadonlySignal<string | undefined>;
  readonly view: Signal<ChartView>;
};

type Frozen = { readonly nowSeconds: number; readonly spans: readonly Span[]; readonly compared: readonly Span[] };

/** What is in view, at the time of the clock or, if frozen, of the freeze. */
const createFrame = ({ nowSeconds, view }: ChartModelParts, frozen: ReadonlySignal<Frozen | undefined>) => {
  const now = computed(() => frozen.value?.nowSeconds ?? nowSeconds.value);
  const window = computed(() => windowOf(view.value, now.value));
  const resolution = computed(() => resolutionOf(view.value.seconds));
  // As text, so that they change only with the chunks in view, not with every frame of a pan.
  const gridText = computed(() => JSON.stringify(gridOf(window.value, resolution.value)));
  const comparedText = computed(() =>
    JSON.stringify(gridOf(window.value, resolution.value === 'reports' ? 1 : resolution.value)),
  );
  const parse = (text: string): ChartGrid => JSON.parse(text) as ChartGrid; // as written above
  return {
    now,
    window,
    resolution,
    grid: computed(() => parse(gridText.value)),
    comparedGrid: computed(() => parse(comparedText.value)),
  };
};

/** Grids that follow each other faster than this are passed over: a zoom must not use up the rate limit. */
const restMs = 120;

/** Runs at once, but after a change of the key soon after another only once there is rest. */
const createRest = (ms: number) => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let last: { readonly key: unknown; readonly atMs: number } | undefined;
  return {
    run: (key: unknown, act: () => void): void => {
      clearTimeout(timer);
      const nowMs = performance.now();
      const isRest = last === undefined || nowMs - last.atMs > ms;
      if (last?.key !== key) last = { key, atMs: nowMs };
      if (isRest) act();
      else timer = setTimeout(act, ms);
    },
    stop: () => clearTimeout(timer),
  };
};

/** The data of both streams. */
const createBars = (
  { client, feedId, spans, comparedSpans, compareId }: ChartModelParts,
  { now, window, grid, comparedGrid }: ReturnType<typeof createFrame>,
  frozen: ReadonlySignal<Frozen | undefined>,
) => {
  const version = signal(0);
  const changed = (): void => {
    version.value += 1;
  };
  const retention = createRetention();
  const source = createChartSource(client, feedId, retention, changed);
  const compared = computed(() =>
    compareId.value === undefined ? undefined : createChartSource(client, compareId.value, retention, changed),
  );
  const onChange = <T>(read: () => T): ReadonlySignal<T> =>
    computed(() => {
      void version.value;
      return read();
    });
  return {
    compareId,
    bars: onChange(() => source.read(grid.value, frozen.value?.spans ?? spans.value, now.peek())),
    comparedBars: onChange(() =>
      compared.value?.read(comparedGrid.value, frozen.value?.compared ?? comparedSpans.value, now.peek()),
    ),
    isLoading: onChange(() => source.isLoading(grid.value, window.value, now.value)),
    failure: onChange(() => source.failureOf(grid.value, window.value, now.value)),
    comparedFailure: onChange(() => compared.value?.failureOf(comparedGrid.value, window.value, now.value)),
    /** The oldest second that the server keeps; undefined until a view was before it. */
    oldest: onChange(retention.oldest),
    retry: () => {
      source.retry();
      compared.peek()?.retry();
      changed();
    },
    /** Loads what is in view until the returned function is called. */
    start: () => {
      const rest = createRest(restMs);
      const stops = [
        effect(() => {
          void version.value;
          const [own, other, view, second] = [grid.value, comparedGrid.value, window.value, now.value];
          const otherSource = compared.value;
          rest.run(own, () => {
            source.want(own, view, second);
            otherSource?.want(other, view, second);
          });
        }),
        effect(() => {
          const other = compared.value;
          return () => other?.close();
        }),
        rest.stop,
      ];
      return () => {
        for (const stop of stops) stop();
        source.close();
      };
    },
  };
};

/** Nothing is loaded until `start`, which returns how to stop. */
export function createChartModel(inputs: ChartModelParts) {
  const { nowSeconds, spans, comparedSpans, view } = inputs;
  const frozen = signal<Frozen | undefined>(undefined);
  const pointedMs = signal<number | undefined>(undefined);
  const frame = createFrame(inputs, frozen);
  const data = createBars(inputs, frame, frozen);
  return {
    ...frame,
    ...data,
    view,
    /** The bar that is pointed at; undefined if none is, or it is not loaded. */
    crosshair: computed((): Bar | undefined => {
      const [bars, ms] = [data.bars.value, pointedMs.value];
      return bars === undefined || ms === undefined ? undefined : barAt(bars, ms);
    }),
    isPaused: computed(() => frozen.value !== undefined),
    /** Reports that came while the chart stands still. */
    waiting: computed(() => {
      const last = frozen.value?.spans.at(-1)?.endMs ?? 0;
      return frozen.value === undefined ? 0 : spans.value.filter(({ endMs }) => endMs > last).length;
    }),
    /** Points at the bar at a time, and the chart stands still. */
    point: (ms: number) =>
      batch(() => {
        frozen.value ??= { nowSeconds: nowSeconds.peek(), spans: spans.peek(), compared: comparedSpans.peek() };
        pointedMs.value = ms;
      }),
    /** Points at nothing, and the chart moves on. */
    release: () =>
      batch(() => {
        frozen.value = undefined;
        pointedMs.value = undefined;
      }),
  };
}

export type ChartModel = ReturnType<typeof createChartModel>;
