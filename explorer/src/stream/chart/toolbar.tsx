// The buttons of the chart: ranges, zoom, back to the newest report, candles or line.
import type { ChartActions } from './actions.ts';
import type { ChartModel } from './model.ts';
import { type ChartKind, rangeNames, ranges } from './view.ts';

type Parts = { readonly model: ChartModel; readonly actions: ChartActions };

export const RangeButtons = ({ model, actions }: Parts) => {
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
};

const kinds: readonly (readonly [ChartKind, string])[] = [
  ['candles', 'Candles'],
  ['line', 'Line'],
];

export const KindButtons = ({ model, actions }: Parts) => {
  const { resolution, view } = model;
  const isFixed = resolution.value === 'reports' || resolution.value === 1;
  const title = isFixed ? 'Candles need a range of more than 24 minutes' : undefined;
  return (
    <fieldset class="button-group" aria-label="Chart type" title={title}>
      {kinds.map(([kind, label]) => (
        <button
          key={kind}
          type="button"
          disabled={isFixed}
          aria-pressed={view.value.kind === kind}
          onClick={() => actions.set({ kind })}
        >
          {label}
        </button>
      ))}
    </fieldset>
  );
};

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
