// The validity bar of a report: its own window, those of the adjacent reports, and the gaps between, each as a share of the bar. The
// shares are floats for drawing; printed times come from the windows.

/** A window, both ends included. */
export type SpanWindow = { readonly fromMs: number; readonly toMs: number };

export type SpanPart = {
  readonly kind: 'report' | 'neighbor' | 'gap';
  /** Shares of the bar, from 0 to 100. */
  readonly begin: number;
  readonly width: number;
};

export type SpanBar = {
  readonly parts: readonly SpanPart[];
  /** The share at which the requested time lies. */
  readonly marker: number | undefined;
};

/** An adjacent report further away than this many widths of the report is drawn at the edge. */
const widthsAround = 3;

/** Computes the bar. `unitMs` is the stream's timestamp resolution, so that a window of one second is one second wide. */
export function drawSpan(
  own: SpanWindow,
  previous: SpanWindow | undefined,
  next: SpanWindow | undefined,
  unitMs: number,
  askedMs: number | undefined,
): SpanBar {
  const ownEnd = own.toMs + unitMs;
  const margin = widthsAround * (ownEnd - own.fromMs);
  const begin = Math.max(own.fromMs - margin, Math.min(own.fromMs, previous?.fromMs ?? own.fromMs));
  const end = Math.min(ownEnd + margin, Math.max(ownEnd, next === undefined ? ownEnd : next.toMs + unitMs));
  const share = (ms: number): number => (100 * (Math.min(Math.max(ms, begin), end) - begin)) / (end - begin);
  const part = (kind: SpanPart['kind'], fromMs: number, toMs: number): readonly SpanPart[] => {
    const [left, right] = [share(fromMs), share(toMs)];
    return right > left ? [{ kind, begin: left, width: right - left }] : [];
  };
  const parts = [
    ...(previous === undefined
      ? []
      : [
          ...part('neighbor', previous.fromMs, previous.toMs + unitMs),
          ...part('gap', previous.toMs + unitMs, own.fromMs),
        ]),
    ...part('report', own.fromMs, ownEnd),
    ...(next === undefined
      ? []
      : [...part('gap', ownEnd, next.fromMs), ...part('neighbor', next.fromMs, next.toMs + unitMs)]),
  ];
  return { parts, marker: askedMs === undefined ? undefined : share(askedMs + unitMs / 2) };
}
