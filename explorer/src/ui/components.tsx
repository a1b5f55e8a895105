// The small components that pages share. They render their props and do not call the API.
import { dayMs, type StreamStatus } from '@sealpost/protocol';
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { explainError } from '../state/session.ts';
import { allowedAgeMs, formatAge, formatInterval, freshnessOf, splitPrice } from './format.ts';
import { type PriceDigits, splitFixed } from './price/digits.ts';

/** Sets the title of the tab and the history entry. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Sealpost`;
  }, [title]);
}

type Children = { readonly children?: ComponentChildren };

const copiedMs = 1_600;

/**
 * A button that copies a text. `label` is its accessible name and tooltip; children are its visible text. `tabIndex` is for lists that
 * the arrow keys move through.
 */
export function Copy({
  text,
  label,
  tabIndex,
  children,
}: { readonly text: string; readonly label: string; readonly tabIndex?: number } & Children) {
  const [state, setState] = useState<'idle' | 'done' | 'failed'>('idle');
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async (event: Event): Promise<void> => {
    event.preventDefault();
    event.stopPropagation();
    const next = await writeClipboard(text);
    setState(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setState('idle'), copiedMs);
  };
  const said = { idle: label, done: 'Copied', failed: 'Your browser blocked copying. Select the text instead' }[state];
  return (
    <button
      type="button"
      class={`copy quiet ${state}`}
      title={said}
      aria-label={label}
      tabIndex={tabIndex}
      onClick={copy}
    >
      <span class="copy-icon" aria-hidden="true" />
      {children}
      {state !== 'idle' && (
        <span class="unseen" role="status">
          {said}
        </span>
      )}
    </button>
  );
}

/** Copies a text; `failed` where the browser does not allow it: pages need https or localhost. */
export async function writeClipboard(text: string): Promise<'done' | 'failed'> {
  try {
    await navigator.clipboard.writeText(text);
    return 'done';
  } catch {
    return 'failed';
  }
}

export type PillKind = 'plain' | 'neutral' | 'accent' | 'ok' | 'warn' | 'bad';

/** A short fact. `plain` has no dot. */
export const Pill = ({
  kind = 'neutral',
  title,
  children,
}: { readonly kind?: PillKind; readonly title?: string } & Children) => (
  <span class={`pill ${kind}`} title={title}>
    {children}
  </span>
);

/** How each status looks. */
export const statusKinds = { live: 'ok', testing: 'accent', decommissioned: 'neutral' } as const satisfies Record<
  StreamStatus,
  PillKind
>;

/** An end further away than this is no warning. */
const soonMs = 90 * dayMs;

/** Whole days while more than three are left. */
const countdown = (ms: number): string => formatAge(ms > 3 * dayMs ? ms - (ms % dayMs) : ms);

/** A stream's status, with a countdown if its end is scheduled; gray while the server is unreachable: it is the last known one. */
export function StatusPill({
  status,
  expectedDecommissionAt,
  nowMs,
}: {
  readonly status: StreamStatus;
  readonly expectedDecommissionAt: string | null;
  readonly nowMs: number;
}) {
  const { times, live } = useExplorer();
  const kind = live.state.value === 'reconnecting' ? 'neutral' : statusKinds[status];
  if (status === 'decommissioned' || expectedDecommissionAt === null) return <Pill kind={kind}>{status}</Pill>;
  const endMs = Date.parse(expectedDecommissionAt);
  if (endMs - nowMs > soonMs)
    return (
      <Pill kind={kind} title={`Decommission expected ${times.format(endMs)}`}>
        {status}
      </Pill>
    );
  const left = endMs > nowMs ? `${countdown(endMs - nowMs)} left` : 'end overdue';
  return (
    <Pill kind="warn" title={`Decommission expected ${times.format(endMs)}, ${times.formatOther(endMs)}`}>
      {status} · {left}
    </Pill>
  );
}

/** A notice; `action` is what to do about it. Screen readers announce errors and warnings. */
export const Notice = ({
  kind = 'info',
  title,
  action,
  children,
}: {
  readonly kind?: 'info' | 'warning' | 'error';
  readonly title: string;
  readonly action?: ComponentChildren;
} & Children) => (
  <div class={`notice ${kind}`} role={kind === 'info' ? undefined : 'alert'}>
    <div>
      <p class="notice-title">{title}</p>
      {children !== undefined && <div class="notice-text">{children}</div>}
    </div>
    {action}
  </div>
);

/** An empty state: why there is nothing, and what to do. `level` 1 if it is the whole page. */
export const Empty = ({
  title,
  level = 2,
  action,
  children,
}: { readonly title: string; readonly level?: 1 | 2; readonly action?: ComponentChildren } & Children) => (
  <div class="empty">
    {level === 1 ? <h1>{title}</h1> : <h2>{title}</h2>}
    {children !== undefined && <div>{children}</div>}
    {action}
  </div>
);

/** A skeleton for lines that are loading. `label` is for screen readers. */
export const Loading = ({ label = 'Loading', lines = 3 }: { readonly label?: string; readonly lines?: number }) => (
  <div class="skeleton" role="status" aria-label={label}>
    {Array.from({ length: lines }, (_, i) => (
      <span key={i} />
    ))}
  </div>
);

/** What went wrong, and what to do about it. */
export function Failure({ error, retry }: { readonly error: unknown; readonly retry?: () => void }) {
  const { problem, advice } = explainError(error);
  return (
    <Notice
      kind="error"
      title={problem}
      action={
        retry !== undefined && (
          <button type="button" onClick={retry}>
            Try again
          </button>
        )
      }
    >
      {advice}
    </Notice>
  );
}

/** A time in the zone that the user chose; the other zone in the tooltip, or next to it with `both`. */
export function Time({ ms, both = false }: { readonly ms: number; readonly both?: boolean }) {
  const { times } = useExplorer();
  const other = times.formatOther(ms);
  return (
    <time dateTime={new Date(ms).toISOString()} title={other}>
      {times.format(ms)}
      {both && <span class="time-other"> · {other}</span>}
    </time>
  );
}

/** An exact number; digits beyond the first eight significant ones are dimmed. With `digits`, those of its stream, it always has as many. */
export function Exact({
  value,
  decimals = 18,
  digits,
}: {
  readonly value: bigint;
  readonly decimals?: number;
  readonly digits?: PriceDigits | undefined;
}) {
  const { head, tail } = digits === undefined ? splitPrice(value, decimals) : splitFixed(value, digits);
  return (
    <span class="exact">
      {head}
      {tail !== '' && <span class="exact-tail">{tail}</span>}
    </span>
  );
}

/**
 * The age of the newest report, as text and as a bar that is full when the next report is overdue. Without an interval, only the text.
 * While the market is closed, an old report is normal. `isShort`: only the largest unit, where there is little space; the tooltip has both.
 */
export function Freshness({
  ageMs,
  intervalMs,
  isClosed = false,
  isShort = false,
}: {
  readonly ageMs: number;
  readonly intervalMs: number | undefined;
  readonly isClosed?: boolean;
  readonly isShort?: boolean;
}) {
  const kind = intervalMs === undefined ? 'fresh' : freshnessOf(ageMs, intervalMs);
  const share = intervalMs === undefined ? 0 : Math.min(1, Math.max(0, ageMs) / allowedAgeMs(intervalMs));
  const rhythm = intervalMs === undefined ? '' : `, a report every ${formatInterval(intervalMs)}`;
  const isResting = isClosed && kind !== 'fresh';
  const said = isResting ? 'market closed' : kind;
  return (
    <span
      class={`freshness ${isResting ? 'closed' : kind}`}
      title={`${said}: newest report ${formatAge(ageMs)} ago${rhythm}`}
    >
      <span class="freshness-track" aria-hidden="true">
        <span class="freshness-fill" style={{ transform: `scaleX(${share})` }} />
      </span>
      <span>{formatAge(ageMs, isShort ? 1 : 2)}</span>
    </span>
  );
}
