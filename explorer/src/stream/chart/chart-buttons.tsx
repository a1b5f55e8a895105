// The buttons of the chart: ranges, zoom, back to the newest report, candles or line, and saving it as a picture.
import type { CatalogEntry } from '@sealpost/protocol';
import { useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import { unitTextOf } from '../../ui/price-unit.ts';
import type { ChartActions } from './actions.ts';
import type { ChartCanvas } from './canvas.ts';
import { colorsOf } from './chart-hooks.ts';
import { type ChartKind, rangeNames, ranges } from './chart-view.ts';
import type { ChartModel } from './model.ts';
import { pictureFileName, savePicture } from './picture-file.ts';

type Parts = { readonly model: ChartModel; readonly actions: ChartActions };

export function RangeButtons({ model, actions }: Parts) {
  const { seconds, end } = model.view.value;
  return (
    <fieldset class="button-group chart-ranges" aria-label="Chart range">
      {rangeNames.map((name) => (
        <button
          key={name}
          type="button"
          title={`The last ${ranges[name].words}`}
          aria-pressed={end === undefined && ranges[name].seconds === seconds}
          onClick={() => actions.follow(ranges[name].seconds)}
        >
          {ranges[name].label}
        </button>
      ))}
    </fieldset>
  );
}

const kinds: readonly (readonly [ChartKind, string])[] = [
  ['candles', 'Candles'],
  ['line', 'Line'],
];

export function KindButtons({ model, actions }: Parts) {
  const { resolution, view } = model;
  const isFixed = resolution.value === 'reports' || resolution.value === 1;
  const title = isFixed ? 'Candles need a range of more than 24 minutes' : undefined;
  return (
    <fieldset class="button-group" aria-label="Chart type" title={title}>
      {kinds.map(([kind, label]) => (
        <button
          key={kind}
          type="button"
          aria-disabled={isFixed}
          aria-pressed={view.value.kind === kind}
          onClick={() => !isFixed && actions.set({ kind })}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
}

export const ZoomButtons = ({ model, actions }: Parts) => (
  <fieldset class="button-group" aria-label="Zoom">
    <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick={() => actions.zoom(2)}>
      −
    </button>
    <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => actions.zoom(0.5)}>
      +
    </button>
    <button type="button" aria-disabled={model.view.value.end === undefined} onClick={() => actions.follow()}>
      Now
    </button>
  </fieldset>
);

type SaveProps = {
  readonly model: ChartModel;
  readonly canvas: ChartCanvas | null | undefined;
  readonly stream: CatalogEntry;
  readonly names: readonly [own: string, other: string];
};

export function SaveButton({ model, canvas, stream, names }: SaveProps) {
  const { theme, times, clock, live } = useExplorer();
  const [hasFailed, setFailed] = useState(false);
  const save = async (): Promise<void> => {
    if (canvas == null) return;
    const { from, to } = model.window.peek();
    const newest = live.latest(stream.feedId).peek()?.decoded;
    // A rate has no unit but the ratio itself, whose percentage is that of one price.
    const unit = newest === undefined ? stream.quoteAsset : unitTextOf(newest.version, newest.price, stream.quoteAsset);
    const colors = colorsOf(theme);
    const isCompared = model.compareId.peek() !== undefined;
    const isSaved = await savePicture(
      canvas.screenshot(),
      window.devicePixelRatio,
      {
        title: `${stream.name} · ${isCompared ? 'change in percent' : unit.startsWith('=') ? 'ratio' : unit}`,
        range: `${times.format(Math.round(from) * 1_000)} – ${times.format(Math.round(to) * 1_000)}`,
        saved: times.format(Math.floor(clock.nowMs.peek() / 1_000) * 1_000),
        legend: isCompared
          ? [
              { name: names[0], color: colors.line },
              { name: names[1], color: colors.other },
            ]
          : [],
      },
      { background: theme.color('--surface'), text: theme.color('--text'), muted: theme.color('--muted') },
      pictureFileName(names[0], from, to),
    );
    setFailed(!isSaved);
  };
  return (
    <button type="button" title="Save the chart as a PNG picture" aria-disabled={canvas == null} onClick={save}>
      {hasFailed ? 'Not saved: try again' : 'PNG'}
    </button>
  );
}
