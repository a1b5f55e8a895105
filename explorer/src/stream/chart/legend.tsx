// The legend above the chart: the exact values of the bar that is pointed at, or of the newest one, and what a click does.
import type { Candle } from '@sealpost/client';
import { isSchemaVersion, reportSchemas, schemaVersionOf } from '@sealpost/protocol';
import { useExplorer } from '../../state/explorer.ts';
import type { Times } from '../../state/settings/times.ts';
import { Exact } from '../../ui/components.tsx';
import { formatAge, formatPrice } from '../../ui/format.ts';
import { changeOf, formatPercent } from '../../ui/price/change.ts';
import { widenDigits } from '../../ui/price/digits.ts';
import type { Span } from '../chart-spans.ts';
import { actionOf } from './actions.ts';
import { type Bar, barAt, type ChartBars, edgesOf, priceOf } from './bars.ts';
import type { ChartModel } from './model.ts';
import type { ChartResolution, ChartWindow } from './resolution.ts';

/** How the crosshair was moved last: names the way to click. */
export type ChartInput = 'pointer' | 'touch' | 'keys';

/** The bar that the legend describes: that of the crosshair, or the newest in view. */
const legendBar = ({ crosshair, bars, window }: ChartModel): Bar | undefined => {
  if (crosshair.value !== undefined) return crosshair.value;
  const { from, to } = window.value;
  return bars.value === undefined ? undefined : edgesOf(bars.value, from * 1_000, to * 1_000)?.last;
};

type LegendProps = {
  readonly model: ChartModel;
  readonly feedId: string;
  readonly input: ChartInput;
  /** Of the stream, and of the compared one. */
  readonly names: readonly [own: string, other: string];
};

export function Legend({ model, feedId, input, names }: LegendProps) {
  const { times } = useExplorer();
  const bar = legendBar(model);
  if (bar === undefined) return <p class="legend small">{'\u00a0'}</p>; // nothing is known yet
  return (
    <p class="legend small">
      <span class="legend-value">{timeText(bar, times)}</span>
      {model.compareId.value === undefined ? (
        <BarValues bar={bar} feedId={feedId} />
      ) : (
        <Changes model={model} bar={bar} names={names} />
      )}
      {model.crosshair.value !== undefined && <span class="legend-value muted">{hintOf(bar, input)}</span>}
    </p>
  );
}

const BarValues = ({ bar, feedId }: { readonly bar: Bar; readonly feedId: string }) => {
  const { live } = useExplorer();
  const values = valuesOf(bar);
  const prices = values.map(([, value]) => value);
  const digits = widenDigits(live.digits(feedId).value, prices);
  return (
    <>
      {values.map(([name, value]) => (
        <span key={name} class="legend-value">
          <span class="muted">{name}</span> <Exact value={value} digits={digits} />
        </span>
      ))}
      {bar.kind === 'gap' && <span class="muted">No valid report</span>}
    </>
  );
};

/** From the first price in view to that of the bar: `+1.25 %`. */
const changeText = (bars: ChartBars | undefined, { from, to }: ChartWindow, bar: Bar): string => {
  const first = bars === undefined ? undefined : priceOf(edgesOf(bars, from * 1_000, to * 1_000)?.first);
  const last = bars === undefined ? undefined : priceOf(barAt(bars, bar.startMs));
  if (first === undefined || last === undefined) return 'no report';
  const { difference, percent } = changeOf(first, last);
  return percent === undefined ? '' : formatPercent(percent, difference);
};

/** Both streams, each with its change since the start of the view. */
const Changes = ({
  model,
  bar,
  names: [own, other],
}: Omit<LegendProps, 'input' | 'feedId'> & { readonly bar: Bar }) => {
  const { bars, comparedBars, window } = model;
  return (
    <>
      <span class="legend-value legend-own">
        <span class="muted">{own}</span> {changeText(bars.value, window.value, bar)}
      </span>
      <span class="legend-value legend-other">
        <span class="muted">{other}</span> {changeText(comparedBars.value, window.value, bar)}
      </span>
    </>
  );
};

type NamedValue = readonly [name: string, value: bigint];

const spanValues = ({ price, bid, ask }: Span): readonly NamedValue[] => [
  ['Price', price],
  ...(bid === undefined ? [] : [['Bid', bid] as const]),
  ...(ask === undefined ? [] : [['Ask', ask] as const]),
];

/** A second with one report has one price. */
const candleValues = ({ open, high, low, close, reports }: Candle, lengthMs: number): readonly NamedValue[] =>
  reports === 1 && lengthMs <= 1_000
    ? [['Price', close]]
    : [
        ['Open', open],
        ['High', high],
        ['Low', low],
        ['Close', close],
      ];

const valuesOf = (bar: Bar): readonly NamedValue[] =>
  bar.kind === 'report'
    ? spanValues(bar.span)
    : bar.kind === 'candle'
      ? candleValues(bar.candle, bar.endMs - bar.startMs)
      : [];

/** `2026-11-15 09:28:17 UTC`, the first and the last second of a longer report, or the start and end of a candle. */
const timeText = (bar: Bar, times: Times): string => {
  const endMs = bar.kind === 'report' ? bar.span.observedMs : bar.endMs;
  if (bar.startMs === endMs || (bar.kind !== 'report' && endMs - bar.startMs <= 1_000))
    return times.format(bar.startMs);
  const [start, end] = [times.split(bar.startMs), times.split(endMs)];
  return `${start.day} ${start.clock} – ${start.day === end.day ? '' : `${end.day} `}${end.clock} ${end.zone}`;
};

const clicks: Readonly<Record<ChartInput, string>> = { pointer: 'Click', touch: 'Tap again', keys: 'Press Enter' };

const hintOf = (bar: Bar, input: ChartInput): string => {
  const action = actionOf(bar);
  if (action === undefined) return '';
  if (action === 'open') return `${clicks[input]} to open the report`;
  return `${clicks[input]} to zoom into these ${formatAge(bar.endMs - bar.startMs)}`;
};

/** The crosshair in words, for screen readers; empty unless keys moved it. */
export function Announcement({ model, input }: { readonly model: ChartModel; readonly input: ChartInput }) {
  const { times } = useExplorer();
  const bar = model.crosshair.value;
  const values = bar === undefined ? [] : valuesOf(bar).map(([name, value]) => `${name} ${formatPrice(value)}`);
  return (
    <span class="unseen" role="status">
      {bar !== undefined &&
        input === 'keys' &&
        `${timeText(bar, times)}: ${values.length === 0 ? 'no valid report' : values.join(', ')}`}
    </span>
  );
}

/** Do the reports of a stream have bid and ask? */
export function hasBand(feedId: string): boolean {
  const version = schemaVersionOf(feedId);
  return isSchemaVersion(version) && 'bid' in reportSchemas[version].headline;
}

/** What the chart draws, for those who cannot see it, and below it for everyone. */
export function captionOf(resolution: ChartResolution, isCompared: boolean, isBandDrawn: boolean): string {
  if (isCompared) return 'Changes in percent since the start of the view; where no report is valid, nothing is drawn.';
  if (resolution === 'reports')
    return `Each bar covers the seconds in which a report is valid${isBandDrawn ? '; the band behind it spans bid to ask' : ''}. No bar means no report.`;
  if (resolution === 1) return 'A line through the last price of each second; no line means no report.';
  return `${formatAge(resolution * 1_000)} candles; no candle means no report.`;
}
