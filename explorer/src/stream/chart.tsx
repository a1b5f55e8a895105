// The price chart of a stream: the ranges, the legend with exact values, and the canvas, whose code is loaded on demand.
import type { Candle } from '@sealpost/client';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { reportHref } from '../state/router.ts';
import type { Times } from '../state/settings/times.ts';
import { Failure, Loading } from '../ui/components.tsx';
import { formatAge, formatPrice } from '../ui/format.ts';
import { type Renewed, useRenewed } from '../ui/polling.ts';
import type { Theme } from '../ui/theme.ts';
import type { ChartCanvas, ChartColors, ChartTime } from './chart-canvas.ts';
import { addToCandles, candlePoints, type RangeName, ranges, type Span, secondsOf, spanAt } from './chart-spans.ts';
import '../styles/chart.css';

/** How often candles are loaded again; in between, live reports update them. */
const candlesEveryMs = 60_000;
/** Live reports this much older than the candles may be missing in them. */
const overlapSeconds = 5;

type LoadedCandles = { readonly candles: readonly Candle[]; readonly atSeconds: number };

const colorsOf = ({ color }: Theme): ChartColors => ({
  text: color('--muted'),
  line: color('--accent'),
  grid: color('--line'),
  crosshair: color('--line-strong'),
  label: color('--line-strong'),
  band: color('--accent-soft'),
  up: color('--ok-fill'),
  down: color('--bad-fill'),
});

export type RangeCandles = {
  /** Undefined until loaded, and in ranges that are drawn from reports. */
  readonly candles: readonly Candle[] | undefined;
  readonly failure: Renewed<unknown>['failure'];
  /** Loads them again now. */
  readonly retry: () => void;
};

/** The candles of a range, updated with live reports. */
export const useCandles = (feedId: string, range: RangeName, spans: readonly Span[]): RangeCandles => {
  const { session, clock } = useExplorer();
  const { resolution, seconds } = ranges[range];
  const client = session.client.value;
  const load = async (signal: AbortSignal): Promise<LoadedCandles | undefined> => {
    if (resolution === undefined) return undefined;
    const to = Math.floor(clock.nowMs.peek() / 1_000);
    const { candles } = await client.candles(feedId, { from: to - seconds + 1, to, resolution }, { signal });
    return { candles, atSeconds: to };
  };
  const [attempt, setAttempt] = useState(0);
  const { value, failure } = useRenewed(load, candlesEveryMs, [feedId, range, client, attempt]);
  const fresh = spans.filter(({ timestamp }) => timestamp > (value?.atSeconds ?? 0) - overlapSeconds);
  const candles =
    resolution === undefined || value === undefined
      ? undefined
      : fresh.reduce((sum, span) => addToCandles(sum, span, resolution), value.candles);
  return { candles, failure: value === undefined ? failure : undefined, retry: () => setAttempt(attempt + 1) };
};

/** The canvas once its code is loaded; `null` if loading failed. */
const useCanvas = (onHover: (time: ChartTime | undefined) => void, onClick: (time: ChartTime) => void) => {
  const { theme } = useExplorer();
  const container = useRef<HTMLDivElement>(null);
  const [canvas, setCanvas] = useState<ChartCanvas | null | undefined>(undefined);
  const click = useRef(onClick);
  click.current = onClick;
  useEffect(() => {
    let made: ChartCanvas | undefined;
    let isGone = false;
    import('./chart-canvas.ts').then(
      ({ createChartCanvas }) => {
        if (isGone || container.current === null) return;
        const handlers = { onHover, onClick: (time: ChartTime) => click.current(time) };
        made = createChartCanvas(container.current, colorsOf(theme), handlers);
        setCanvas(made);
      },
      () => setCanvas(null),
    );
    return () => {
      isGone = true;
      made?.remove();
    };
  }, []);
  const { value: scheme } = theme.scheme;
  useEffect(() => canvas?.setColors(colorsOf(theme)), [canvas, scheme]);
  return { container, canvas };
};

type ChartProps = {
  readonly feedId: string;
  readonly name: string;
  readonly range: RangeName;
  readonly spans: readonly Span[];
  readonly candles: RangeCandles;
};

export const Chart = ({ feedId, name, range, spans, candles: { candles, failure, retry } }: ChartProps) => {
  const { clock, router } = useExplorer();
  const nowSeconds = Math.floor(clock.nowMs.value / 1_000);
  const [hovered, setHovered] = useState<ChartTime | undefined>(undefined);
  const { seconds, resolution, words } = ranges[range];
  const { container, canvas } = useCanvas(setHovered, ({ ms }) => {
    const span = resolution === undefined ? spanAt(spans, ms) : undefined;
    if (span !== undefined) router.go(reportHref(feedId, span.timestamp));
  });
  useEffect(() => {
    if (canvas === undefined || canvas === null) return;
    const from = nowSeconds - seconds + 1;
    if (resolution === undefined) canvas.showSeconds(secondsOf(spans, from, nowSeconds));
    else canvas.showCandles(candlePoints(candles ?? [], from, nowSeconds, resolution));
  }, [canvas, spans, candles?.at(-1), candles?.length, range, nowSeconds]);
  const what = resolution === undefined ? 'each bar is one report' : `${resolution}-second candles`;
  return (
    <figure class="chart">
      <Legend spans={spans} candles={candles} resolution={resolution} hovered={hovered} />
      <div class="chart-frame">
        <div
          ref={container}
          class={`chart-canvas ${resolution === undefined && hovered !== undefined && spanAt(spans, hovered.ms) ? 'is-link' : ''}`}
          role="img"
          aria-label={`Price of ${name} in the last ${words}; ${what}. The table of recent reports has the same values.`}
        />
        {canvas !== undefined && <EmptyRange feedId={feedId} range={range} spans={spans} candles={candles} />}
        {canvas === undefined && <ChartWait />}
        {canvas === null && (
          <p class="chart-note">The chart could not be loaded. Reload the page, or use the table below.</p>
        )}
        {failure !== undefined && (
          <div class="chart-note">
            <Failure error={failure.error} retry={retry} />
          </div>
        )}
      </div>
      <figcaption class="small muted">{captionOf(resolution)}</figcaption>
    </figure>
  );
};

/** The note in a range without data. */
const EmptyRange = ({
  feedId,
  range,
  spans,
  candles,
}: Pick<ChartProps, 'feedId' | 'range' | 'spans'> & { readonly candles: readonly Candle[] | undefined }) => {
  const { live, clock } = useExplorer();
  const { words, seconds, resolution } = ranges[range];
  const newest = live.latest(feedId).value?.decoded;
  const nowMs = clock.nowMs.value;
  const hasSpan = spans.some(({ endMs }) => endMs > nowMs - seconds * 1_000);
  const isEmpty = resolution === undefined ? live.state.value === 'live' && !hasSpan : candles?.length === 0;
  if (!isEmpty) return null;
  if (newest === undefined) return <p class="chart-note muted">No data yet.</p>;
  return (
    <p class="chart-note muted">
      No reports in the last {words}; the newest is {formatAge(nowMs - newest.observationsMs)} old. Try a longer range.
    </p>
  );
};

const ChartWait = () => (
  <div class="chart-note">
    <Loading label="Loading the chart" lines={4} />
  </div>
);

const captionOf = (resolution: number | undefined): string =>
  resolution === undefined
    ? 'Axis in UTC. Each bar covers the seconds in which a report is valid; the band behind it spans bid to ask. No bar means no report. Click a bar to open its report.'
    : `Axis in UTC. ${resolution / 60} min candles; no candle means no report.`;

const Legend = ({
  spans,
  candles,
  resolution,
  hovered,
}: {
  readonly spans: readonly Span[];
  readonly candles: readonly Candle[] | undefined;
  readonly resolution: number | undefined;
  readonly hovered: ChartTime | undefined;
}) => {
  if (resolution !== undefined) {
    if (candles === undefined) return <p class="legend small">{'\u00a0'}</p>; // nothing is known yet
    const candle =
      hovered === undefined ? candles.at(-1) : candles.find(({ timestamp }) => timestamp === hovered.second);
    return <CandleLegend candle={candle} second={hovered?.second} resolution={resolution} />;
  }
  const span = hovered === undefined ? spans.at(-1) : spanAt(spans, hovered.ms);
  return <SpanLegend span={span} second={hovered?.second} />;
};

const Value = ({ name, value }: { readonly name: string; readonly value: bigint | undefined }) =>
  value === undefined ? null : (
    <span class="legend-value">
      <span class="muted">{name}</span> {formatPrice(value)}
    </span>
  );

const SpanLegend = ({ span, second }: { readonly span: Span | undefined; readonly second: number | undefined }) => {
  const { times } = useExplorer();
  return (
    <p class="legend small">
      {span === undefined ? (
        <span class="muted">
          {second === undefined ? 'No report in this range' : `${times.format(second * 1_000)} · no valid report`}
        </span>
      ) : (
        <>
          <span class="legend-value">{windowText(span, times)}</span>
          <Value name="Price" value={span.price} />
          <Value name="Bid" value={span.bid} />
          <Value name="Ask" value={span.ask} />
        </>
      )}
    </p>
  );
};

/** `2026-11-15 09:28:17 UTC`, or the first and the last second of a longer window. */
const windowText = ({ startMs, observedMs }: Span, times: Times): string => {
  if (startMs === observedMs) return times.format(observedMs);
  const [start, end] = [times.split(startMs), times.split(observedMs)];
  return `${start.day} ${start.clock} – ${end.clock} ${end.zone}`;
};

/** `2026-11-15 09:28 – 09:29 UTC`. */
const bucketText = (start: number, resolution: number, times: Times): string => {
  const [from, to] = [times.split(start * 1_000), times.split((start + resolution) * 1_000)];
  return `${from.day} ${from.clock.slice(0, 5)} – ${to.clock.slice(0, 5)} ${to.zone}`;
};

const CandleLegend = ({
  candle,
  second,
  resolution,
}: {
  readonly candle: Candle | undefined;
  readonly second: number | undefined;
  readonly resolution: number;
}) => {
  const { times } = useExplorer();
  const start = candle?.timestamp ?? second;
  return (
    <p class="legend small">
      {start !== undefined && <span class="legend-value">{bucketText(start, resolution, times)}</span>}
      {candle === undefined ? (
        <span class="muted">No report in this bucket</span>
      ) : (
        <>
          <Value name="Open" value={candle.open} />
          <Value name="High" value={candle.high} />
          <Value name="Low" value={candle.low} />
          <Value name="Close" value={candle.close} />
        </>
      )}
    </p>
  );
};
