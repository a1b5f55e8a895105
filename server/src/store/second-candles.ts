// Candles of a second, for every engine: they are read from reports, because roll-ups begin at a minute. Reports without a price that this
// release can decode are left out, as in roll-ups.
import { type FeedId, secondsMax } from '@sealpost/protocol';
import { addCandle, type Candle } from './candle-rollup.ts';
import { contentsOf } from './format/report-contents.ts';
import type { ReportStore, StoredReport } from './store.ts';

/** Reads part of a page; what happens in between is up to the caller. */
type Slice = <T>(work: () => Promise<T>) => Promise<T>;

/** Reports that one slice reads or decodes: 1 ms. */
const sliceReports = 50;
/** What a second of a millisecond stream can hold, so that a page of this size never ends within one. */
const secondReportsMax = 1_000;

/** The candles of each second from one to another, both included, ascending. `onRead` gets the number of reports of each page. */
export async function readSecondCandles(
  reports: Pick<ReportStore, 'page'>,
  feedId: FeedId,
  { from, to }: { readonly from: number; readonly to: number },
  inSlice: Slice,
  onRead: (count: number) => void,
): Promise<readonly Candle[]> {
  const candles: Candle[] = [];
  for (let start = from; start <= to; ) {
    const { found, next } = await inSlice(() => readWholeSeconds(reports, feedId, start));
    onRead(found.length);
    for (let i = 0; i < found.length; i += sliceReports)
      await inSlice(async () => {
        for (const report of found.slice(i, i + sliceReports)) if (secondOf(report) <= to) addReport(candles, report);
      });
    start = next;
  }
  return candles;
}

const secondOf = ({ observationsMs }: StoredReport): number => Math.floor(observationsMs / 1_000);

/** The next reports, to the end of a second; `next` is where reading continues, after the last second of all where nothing follows. */
const readWholeSeconds = async (reports: Pick<ReportStore, 'page'>, feedId: FeedId, start: number) => {
  const few = await reports.page(feedId, start, sliceReports);
  const [first, last] = [few.reports[0], few.reports.at(-1)];
  if (first === undefined || last === undefined || !few.more) return { found: few.reports, next: secondsMax + 1 };
  if (secondOf(first) < secondOf(last)) return { found: few.reports, next: secondOf(last) + 1 };
  // One second may have more reports than that: the whole of it is read, and what follows it in the same page.
  const { reports: found, more } = await reports.page(feedId, start, secondReportsMax);
  return { found, next: more ? secondOf(found.at(-1) ?? last) + 1 : secondsMax + 1 };
};

/** Adds a report that is observed after those before it. */
const addReport = (candles: Candle[], report: StoredReport): void => {
  const price = contentsOf(report.fullReport)?.price;
  if (price === undefined) return;
  addCandle(candles, { start: secondOf(report), open: price, high: price, low: price, close: price, reports: 1 });
};
