// Counts the results of lines, and renders the summary.
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { formatCount, formatNumberOf, type Paint } from '../../formats.ts';

/** Rejections with one code: their number, and the first one. */
type RefusalCount = { count: number; readonly firstLine: number; readonly message: string };

/** Counts of lines by result, and of rejected ones by code. */
export type IngestSummary = {
  readonly lines: number;
  readonly stored: number;
  readonly duplicate: number;
  readonly refused: number;
  readonly refusals: Readonly<Record<string, number>>;
  readonly elapsedMs: number;
  readonly interrupted: boolean;
};

export type IngestTally = ReturnType<typeof createTally>;

/** Starts counting, the time included. */
export function createTally() {
  const startedMs = performance.now();
  const counts = { stored: 0, duplicate: 0, refused: 0 };
  const refusals = new Map<string, RefusalCount>();
  const lines = () => counts.stored + counts.duplicate + counts.refused;
  return {
    lines,
    refusals,
    add: (results: readonly LineResult[]): void => {
      for (const { result, code, line, message } of results) {
        counts[result] += 1;
        if (code === null) continue;
        const known = refusals.get(code);
        if (known === undefined) refusals.set(code, { count: 1, firstLine: line, message: message ?? '' });
        else known.count += 1;
      }
    },
    summary: (interrupted: boolean): IngestSummary => ({
      lines: lines(),
      ...counts,
      refusals: Object.fromEntries([...refusals].map(([code, { count }]) => [code, count])),
      elapsedMs: Math.round(performance.now() - startedMs),
      interrupted,
    }),
  };
}

/** The summary for people: each result, each rejection code with its first line, and how to list them. */
export function renderTally(tally: IngestTally, interrupted: boolean, { green, red, yellow }: Paint): string {
  const { lines, stored, duplicate, refused, elapsedMs } = tally.summary(interrupted);
  const row = (name: string, count: number) => `  ${name.padEnd(10)}${formatCount(count).padStart(12)}`;
  const rate = formatCount(Math.round((lines / Math.max(1, elapsedMs)) * 1_000));
  const reasons = [...tally.refusals].map(
    ([code, { count, firstLine, message }]) => `${row('', count)}  ${code}, first on line ${firstLine}: ${message}`,
  );
  const head = `${formatNumberOf(lines, 'line')} in ${(elapsedMs / 1_000).toFixed(1)} s, ${rate}/s`;
  return [
    interrupted ? `${head} ${yellow('(interrupted; run it again to resume)')}` : head,
    green(row('stored', stored)),
    row('duplicate', duplicate),
    refused === 0 ? row('rejected', 0) : red(row('rejected', refused)),
    ...reasons,
    ...(refused === 0 ? [] : ['List rejected lines with: sealpost quarantine list.']),
    '',
  ].join('\n');
}
