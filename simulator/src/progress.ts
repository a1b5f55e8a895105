// Owns the progress bar: how far the simulated time has come, the rate, and the time left.
import type { Span } from './simulation.ts';

const barWidth = 30;
const redrawMs = 100;

/** The bar as text. `fraction` is from 0 to 1. */
export const renderProgress = (fraction: number, reports: number, elapsedMs: number): string => {
  const filled = Math.round(fraction * barWidth);
  const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
  const rate = Math.round((reports / Math.max(1, elapsedMs)) * 1_000);
  const leftSeconds = fraction === 0 ? 0 : Math.ceil((elapsedMs * (1 - fraction)) / fraction / 1_000);
  const percent = `${Math.floor(fraction * 100)}`.padStart(3);
  return `${bar} ${percent} %  ${formatCount(reports)} reports  ${formatCount(rate)}/s  ${formatDuration(leftSeconds)} left`;
};

/** A number with its thousands apart. */
const formatCount = (count: number): string => count.toLocaleString('en-US');

/** A count with its noun, in the plural where it needs one. */
export const formatNumberOf = (count: number, noun: string): string =>
  `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;

const formatDuration = (seconds: number): string => {
  const two = (value: number) => `${value}`.padStart(2, '0');
  const minutes = Math.floor(seconds / 60);
  const clock = `${two(minutes % 60)}:${two(seconds % 60)}`;
  return minutes < 60 ? clock : `${Math.floor(minutes / 60)}:${clock}`;
};

export type Progress = { readonly update: (reports: number, deliveredAt: number) => void; readonly end: () => void };

/** Draws the bar on a terminal, ten times a second at most; on anything else it draws nothing. */
export const createProgress = (terminal: NodeJS.WriteStream, { from, to }: Span): Progress => {
  if (!terminal.isTTY) return { update: () => {}, end: () => {} };
  const startedMs = performance.now();
  let drawnMs = startedMs - redrawMs;
  return {
    update: (reports, deliveredAt) => {
      const nowMs = performance.now();
      if (nowMs - drawnMs < redrawMs) return;
      drawnMs = nowMs;
      const fraction = Math.min(1, (deliveredAt - from + 1) / (to - from + 1));
      terminal.write(`\r\x1b[K${renderProgress(fraction, reports, nowMs - startedMs)}`);
    },
    end: () => terminal.write('\r\x1b[K'),
  };
};
