// The progress bar on stderr: how far, how much, how fast, and the time left. On anything but a terminal it draws nothing.
import { formatCount, formatDuration } from './formats.ts';
import type { MessageStream } from './session.ts';

const barWidth = 30;
const redrawMs = 100;

/** How far something has come. `fraction` is from 0 to 1, undefined where the end is not known. */
export type Advance = {
  readonly fraction: number | undefined;
  readonly count: number;
  /** What is counted, and more to tell: `lines  12.3 MB`. */
  readonly label: string;
};

/** The bar as text. */
export function renderProgress({ fraction, count, label }: Advance, elapsedMs: number): string {
  const rate = Math.round((count / Math.max(1, elapsedMs)) * 1_000);
  const counted = `${formatCount(count)} ${label}  ${formatCount(rate)}/s`;
  if (fraction === undefined) return counted;
  const filled = Math.round(fraction * barWidth);
  const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
  const leftSeconds = fraction === 0 ? 0 : Math.ceil((elapsedMs * (1 - fraction)) / fraction / 1_000);
  return `${bar} ${`${Math.floor(fraction * 100)}`.padStart(3)} %  ${counted}  ${formatDuration(leftSeconds)} left`;
}

export type Progress = { readonly update: (advance: Advance) => void; readonly end: () => void };

/** Draws the bar ten times a second at most; `end` wipes it away. */
export function createProgress(terminal: MessageStream): Progress {
  if (!terminal.isTTY) return { update: () => {}, end: () => {} };
  const startedMs = performance.now();
  let drawnMs = startedMs - redrawMs;
  return {
    update: (advance) => {
      const nowMs = performance.now();
      if (nowMs - drawnMs < redrawMs) return;
      drawnMs = nowMs;
      const text = renderProgress(advance, nowMs - startedMs);
      terminal.write(`\r\x1b[K${text.slice(0, Math.max(1, (terminal.columns || 80) - 1))}`); // a bar that wraps cannot be wiped away
    },
    end: () => void terminal.write('\r\x1b[K'),
  };
}
