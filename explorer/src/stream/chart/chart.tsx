// The price chart of a stream: buttons, legend, notes, and the canvas, whose code is loaded on demand.
import { useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Failure, Loading } from '../../ui/components.tsx';
import { formatAge, formatCount } from '../../ui/format.ts';
import { isMarketClosed } from '../../ui/price-age.ts';
import { actionOf } from './actions.ts';
import { edgesOf } from './bars.ts';
import type { StreamChart } from './hooks.ts';
import { useCanvas, useGestures } from './hooks.ts';
import { Announcement, type ChartInput, captionOf, Legend } from './legend.tsx';
import { KindButtons, RangeButtons, ZoomButtons } from './toolbar.tsx';
import { rangeWordsOf } from './view.ts';
import '../../styles/chart.css';

type ChartProps = { readonly chart: StreamChart; readonly feedId: string; readonly name: string };

export const Chart = ({ chart, feedId, name }: ChartProps) => {
  const { model, actions } = chart;
  const [input, setInput] = useState<ChartInput>('pointer');
  const { container, highlight, canvas } = useCanvas(model, feedId);
  useGestures(chart, container, canvas, setInput);
  const action = actionOf(model.crosshair.value);
  return (
    <figure class="chart">
      <div class="chart-tools">
        <RangeButtons {...chart} />
        <div class="chart-tools-view">
          <KindButtons {...chart} />
          <ZoomButtons {...chart} />
        </div>
      </div>
      <Legend model={model} input={input} />
      <div class="chart-frame">
        <div
          ref={container}
          class={`chart-canvas ${action === undefined ? '' : 'is-link'}`}
          role="application"
          aria-roledescription="chart"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it handles keys, as an application does
          tabIndex={0}
          aria-label={`Price chart of ${name}`}
          aria-describedby="chart-caption chart-keys"
          onBlur={actions.release}
        >
          <div ref={highlight} class="chart-highlight" hidden />
        </div>
        <Paused chart={chart} />
        <Notes chart={chart} feedId={feedId} canvas={canvas} />
      </div>
      <Announcement model={model} input={input} />
      <figcaption class="small muted">
        <span id="chart-caption">{captionOf(model.resolution.value)}</span>{' '}
        <span id="chart-keys" class="chart-keys">
          Drag to move in time; Ctrl and the wheel, or a pinch, zoom. Keys: arrows, Enter, + and −.
        </span>
      </figcaption>
    </figure>
  );
};

/** Says that the chart stands still, and what waits. */
const Paused = ({ chart: { model } }: { readonly chart: StreamChart }) => {
  if (!model.isPaused.value || model.view.value.end !== undefined) return null;
  const { value: count } = model.waiting;
  const text = count === 0 ? '' : ` · ${formatCount(count)} new ${count === 1 ? 'report' : 'reports'}`;
  return <p class="chart-paused small muted">Paused{text}</p>;
};

const Notes = ({ chart, feedId, canvas }: { readonly canvas: unknown } & Pick<ChartProps, 'chart' | 'feedId'>) => {
  const { model } = chart;
  const { failure, bars, isLoading } = model;
  if (canvas === null)
    return <p class="chart-note">The chart could not be loaded. Reload the page, or use the table below.</p>;
  if (failure.value !== undefined && bars.value === undefined)
    return (
      <div class="chart-note">
        <Failure error={failure.value.error} retry={model.retry} />
      </div>
    );
  if (canvas === undefined || bars.value === undefined)
    return (
      <div class="chart-note">
        <Loading label="Loading the chart" lines={4} />
      </div>
    );
  if (failure.value !== undefined)
    return (
      <p class="chart-corner small">
        Some data could not be loaded.{' '}
        <button type="button" class="quiet" onClick={model.retry}>
          Try again
        </button>
      </p>
    );
  if (isLoading.value) return <p class="chart-corner small muted">Loading…</p>;
  return <EmptyView chart={chart} feedId={feedId} />;
};

/** The note where no bar is in view. */
const EmptyView = ({
  chart: { model, actions },
  feedId,
}: Pick<ChartProps, 'feedId'> & { readonly chart: StreamChart }) => {
  const { live, clock } = useExplorer();
  const { from, to } = model.window.value;
  const { value: bars } = model.bars;
  const isKnown = model.resolution.value !== 'reports' || live.state.value === 'live';
  if (!isKnown || bars === undefined || edgesOf(bars, from * 1_000, to * 1_000) !== undefined) return null;
  const newest = live.latest(feedId).value?.decoded;
  if (newest === undefined) return <p class="chart-note muted">No data yet.</p>;
  const { seconds, end } = model.view.value;
  const age = formatAge(clock.nowMs.value - newest.observationsMs);
  return (
    <div class="chart-note muted">
      <p>
        {isMarketClosed(newest) && 'Market closed. '}
        {end === undefined
          ? `No reports in the last ${rangeWordsOf(seconds)}; the newest is ${age} old.`
          : `No reports in this time; the newest is ${age} old.`}
      </p>
      <button type="button" onClick={() => actions.showSecond(newest.observationsTimestamp)}>
        Show the newest
      </button>
    </div>
  );
};
