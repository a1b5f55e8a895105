// The price chart of a stream: buttons, legend, notes, and the canvas, whose code is loaded on demand.
import type { CatalogEntry } from '@sealpost/protocol';
import { useRef, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { Failure, Loading } from '../../ui/components.tsx';
import { formatAge, formatCount } from '../../ui/format.ts';
import { isMarketClosed } from '../../ui/price-age.ts';
import { useShortcuts } from '../../ui/use-shortcuts.ts';
import { actionOf } from './actions.ts';
import { edgesOf } from './bars.ts';
import { KindButtons, RangeButtons, SaveButton, ZoomButtons } from './chart-buttons.tsx';
import { type StreamChart, useCanvas, useGestures } from './chart-hooks.ts';
import { rangeWordsOf } from './chart-view.ts';
import { Compare, pairNameOf } from './compare.tsx';
import { useFullScreen } from './full-screen.ts';
import { chartShortcuts } from './keys.ts';
import { Announcement, type ChartInput, captionOf, hasBand, Legend } from './legend.tsx';
import '../../styles/chart.css';

type ChartProps = { readonly chart: StreamChart; readonly stream: CatalogEntry };

export function Chart({ chart, stream }: ChartProps) {
  const { catalog } = useExplorer();
  const { model, actions } = chart;
  const [input, setInput] = useState<ChartInput>('pointer');
  const figure = useRef<HTMLElement>(null);
  const { container, highlight, canvas } = useCanvas(model, stream.feedId);
  useGestures(chart, container, canvas, setInput);
  useShortcuts('In the chart', chartShortcuts);
  const fullScreen = useFullScreen(figure);
  const other = model.compareId.value === undefined ? undefined : catalog.find(model.compareId.value);
  const names = [pairNameOf(stream), other === undefined ? 'Compared stream' : pairNameOf(other)] as const;
  const isCompared = model.compareId.value !== undefined;
  return (
    <figure ref={figure} class={`chart ${fullScreen.mode === 'off' ? '' : 'is-full'}`}>
      <div class="chart-tools">
        <RangeButtons {...chart} />
        <div class="chart-tools-view">
          <KindButtons {...chart} />
          <ZoomButtons {...chart} />
          <Compare chart={chart} feedId={stream.feedId} />
          <SaveButton model={model} canvas={canvas} stream={stream} names={names} />
          <button type="button" aria-pressed={fullScreen.mode !== 'off'} onClick={fullScreen.toggle}>
            Full screen
          </button>
        </div>
      </div>
      {fullScreen.mode !== 'off' && <p class="chart-name">{stream.name}</p>}
      <Legend model={model} feedId={stream.feedId} input={input} names={names} />
      <div class="chart-frame">
        <div
          ref={container}
          class={`chart-canvas ${actionOf(model.crosshair.value) === undefined ? '' : 'is-link'}`}
          role="application"
          aria-roledescription="chart"
          // biome-ignore lint/a11y/noNoninteractiveTabindex: it handles keys, as an application does
          tabIndex={0}
          aria-label={`Price chart of ${names[0]}`}
          aria-describedby="chart-caption chart-keys"
          onBlur={actions.release}
        >
          <div ref={highlight} class="chart-highlight" hidden />
        </div>
        <Paused chart={chart} />
        <Notes chart={chart} feedId={stream.feedId} canvas={canvas} />
      </div>
      <Announcement model={model} input={input} />
      <figcaption class="small muted">
        <span id="chart-caption">{captionOf(model.resolution.value, isCompared, hasBand(stream.feedId))}</span>{' '}
        <span id="chart-keys">Drag to move in time; Ctrl and the wheel, or a pinch, zoom.</span>
      </figcaption>
    </figure>
  );
}

/** Says that the chart stands still, and what waits. */
const Paused = ({ chart: { model } }: { readonly chart: StreamChart }) => {
  if (!model.isPaused.value || model.view.value.end !== undefined) return null;
  const { value: count } = model.waiting;
  const text = count === 0 ? '' : ` · ${formatCount(count)} new ${count === 1 ? 'report' : 'reports'}`;
  return <p class="chart-paused small muted">Paused{text}</p>;
};

const Notes = ({ chart, feedId, canvas }: { readonly canvas: unknown } & EmptyViewProps) => {
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
  if (failure.value !== undefined || model.comparedFailure.value !== undefined)
    return (
      <p class="chart-corner small">
        {failure.value === undefined ? 'The comparison could not be loaded.' : 'Some data could not be loaded.'}{' '}
        <button type="button" class="quiet" onClick={model.retry}>
          Try again
        </button>
      </p>
    );
  if (isLoading.value) return <p class="chart-corner small muted">Loading…</p>;
  return <EmptyView chart={chart} feedId={feedId} />;
};

type EmptyViewProps = { readonly chart: StreamChart; readonly feedId: string };

/** The note where no bar is in view. */
const EmptyView = ({ chart: { model, actions }, feedId }: EmptyViewProps) => {
  const { live, clock, catalog, times } = useExplorer();
  const { from, to } = model.window.value;
  const { value: bars } = model.bars;
  const { value: oldest } = model.oldest;
  if (oldest !== undefined && to <= oldest)
    return <p class="chart-note muted">This server keeps reports from {times.format(oldest * 1_000)}.</p>;
  const isKnown = model.resolution.value !== 'reports' || live.state.value === 'live';
  if (!isKnown || bars === undefined || edgesOf(bars, from * 1_000, to * 1_000) !== undefined) return null;
  const newest = live.latest(feedId).value;
  const isEnded = catalog.find(feedId)?.status === 'decommissioned';
  if (newest === undefined) return <p class="chart-note muted">{isEnded ? 'No reports are left.' : 'No data yet.'}</p>;
  const { decoded } = newest;
  if (decoded === undefined)
    return <p class="chart-note muted">No price to draw: the fields of the reports are not known.</p>;
  const { seconds, end } = model.view.value;
  const age = formatAge(clock.nowMs.value - newest.observationsMs);
  return (
    <div class="chart-note muted">
      <p>
        {isMarketClosed(decoded) && 'Market closed. '}
        {end === undefined
          ? `No reports in the last ${rangeWordsOf(seconds)}; the newest is ${age} old.`
          : `No reports in this time; the newest is ${age} old.`}
      </p>
      <button type="button" onClick={() => actions.showSecond(decoded.observationsTimestamp)}>
        Show the newest
      </button>
    </div>
  );
};
