// Repairs minutes of candles in PostgreSQL. They have no checksums: each is compared with the prices of its reports and rebuilt where it differs
// (D137).
import type { FeedId } from '@sealpost/protocol';
import { mergeRollups, type Rollup, rollUp } from '../../candle-rollup.ts';
import { contentsOf } from '../../format/report-contents.ts';
import { attempt } from '../../format/report-correction.ts';
import type { StoredReport } from '../../store.ts';
import { minuteMs, putCandles } from '../append.ts';
import type { Run } from '../connection.ts';
import { decodeReport, feedBytes, feedIdOfBytes, notLost, type ReportRow, reportColumns } from '../rows.ts';
import type { Tables } from '../schema.ts';
import { type PostgresRepair, putRowAside, takeStep } from './repair-tables.ts';

type CandleRow = { readonly [price in 'open' | 'high' | 'low' | 'close']: string } & {
  readonly minute: number;
  readonly first_ms: number;
  readonly last_ms: number;
  readonly reports: number;
};

/** The minute that a moment falls into. */
export const minuteOf = (ms: number): number => Math.floor(ms / minuteMs) * minuteMs;

const isEqual = (row: CandleRow | undefined, rollup: Rollup | undefined): boolean =>
  row === undefined || rollup === undefined
    ? row === rollup
    : row.first_ms === rollup.firstMs &&
      row.last_ms === rollup.lastMs &&
      row.reports === rollup.reports &&
      (['open', 'high', 'low', 'close'] as const).every((price) => row[price] === `${rollup[price]}`);

const readMinutes = (run: Run, t: Tables, feedId: FeedId, from: number, to: number): Promise<readonly CandleRow[]> =>
  run<CandleRow>(
    `SELECT minute, first_ms, last_ms, open, high, low, close, reports FROM ${t.candles}
     WHERE feed_id = $1::bytea AND minute >= $2::bigint AND minute <= $3::bigint`,
    [feedBytes(feedId), from, to],
  );

const addPrice = (minutes: Map<number, Rollup>, { observationsMs, fullReport }: StoredReport): void => {
  const price = contentsOf(fullReport)?.price;
  if (price === undefined) return; // a store keeps whatever bytes it was given
  const minute = minuteOf(observationsMs);
  minutes.set(minute, mergeRollups(minutes.get(minute), rollUp(observationsMs, price)));
};

/** What the reports of a minute make of it; undefined without any. */
const deriveMinute = async (run: Run, t: Tables, feedId: FeedId, minute: number): Promise<Rollup | undefined> => {
  if (minute % minuteMs !== 0) return undefined;
  const rows = await run<ReportRow>(
    `SELECT ${reportColumns} FROM ${t.reports}
     WHERE feed_id = $1::bytea AND observations >= $2::bigint AND observations < $3::bigint AND ${notLost}`,
    [feedBytes(feedId), minute, minute + minuteMs],
  );
  const minutes = new Map<number, Rollup>();
  for (const row of rows) {
    const report = attempt(() => decodeReport(feedId, row));
    if (report !== undefined) addPrice(minutes, report);
  }
  return minutes.get(minute);
};

/** Makes minutes of a stream again from their reports; one that is right, by then, stays as it is. */
export const rebuildMinutes = (repair: PostgresRepair, feedId: FeedId, minutes: readonly number[]): Promise<void> =>
  takeStep(repair, 'reports', async (run) => {
    const { t, tally, options, partitionOf } = repair;
    for (const minute of minutes) {
      const [row] = await readMinutes(run, t, feedId, minute, minute);
      const rollup = await deriveMinute(run, t, feedId, minute);
      if (isEqual(row, rollup)) continue;
      if (row !== undefined)
        putRowAside(repair, 'candles', `${feedId}/${minute}`, row, 'it is not what its reports make');
      tally.add('candles');
      if (options.dryRun) continue;
      await run(`DELETE FROM ${t.candles} WHERE feed_id = $1::bytea AND minute = $2::bigint`, [
        feedBytes(feedId),
        minute,
      ]);
      if (rollup !== undefined) await putCandles(run, partitionOf(minute), [{ feedId, minute, rollup }]);
    }
  });

/** Minutes that are made again in one transaction. */
const minutesAtOnce = 64;

/** Compares the minutes of streams, whose reports come in the order of a scan, and makes those again that differ. */
export const createMinuteCheck = (repair: PostgresRepair) => {
  const { run, t } = repair;
  let current: FeedId | undefined;
  let checkedTo = Number.MIN_SAFE_INTEGER;
  const minutes = new Map<number, Rollup>();
  /** Compares up to a minute, the last one included. */
  const compare = async (to: number): Promise<void> => {
    if (current === undefined) return;
    const rows = new Map((await readMinutes(run, t, current, checkedTo + 1, to)).map((row) => [row.minute, row]));
    const complete = [...minutes.keys()].filter((minute) => minute <= to);
    const wrong = [...new Set([...rows.keys(), ...complete])].filter(
      (minute) => !isEqual(rows.get(minute), minutes.get(minute)),
    );
    for (const minute of complete) minutes.delete(minute);
    checkedTo = to;
    for (let i = 0; i < wrong.length; i += minutesAtOnce)
      await rebuildMinutes(repair, current, wrong.slice(i, i + minutesAtOnce));
  };
  const endStream = async (): Promise<void> => {
    await compare(Number.MAX_SAFE_INTEGER);
    minutes.clear();
    [current, checkedTo] = [undefined, Number.MIN_SAFE_INTEGER];
  };
  return {
    add: async (report: StoredReport): Promise<void> => {
      if (report.feedId !== current) await endStream();
      current = report.feedId;
      addPrice(minutes, report);
      // The last one may not be complete.
      if (minutes.size > minutesAtOnce) await compare(minuteOf(report.observationsMs) - 1);
    },
    end: endStream,
  };
};

/** Minutes of streams that have no reports. */
export const removeStrayMinutes = async (repair: PostgresRepair, feedIds: ReadonlySet<FeedId>): Promise<void> => {
  const { run, t } = repair;
  const named = await run<{ feed_id: Buffer }>(`SELECT DISTINCT feed_id FROM ${t.candles}`);
  for (const feedId of named.map(({ feed_id }) => feedIdOfBytes(feed_id))) {
    if (feedIds.has(feedId)) continue;
    const rows = await readMinutes(run, t, feedId, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    const minutes = rows.map(({ minute }) => minute);
    for (let i = 0; i < minutes.length; i += minutesAtOnce)
      await rebuildMinutes(repair, feedId, minutes.slice(i, i + minutesAtOnce));
  }
};
