// Renders a report as the API sends it, from parts that need no escaping: hex and integers. A test compares it with JSON.stringify of the protocol's
// `toReportJson`; this takes a quarter of the time.
import type { FeedId } from '@sealpost/protocol';
import { type LatestReport, reportTag, type StoredReport, type Window } from '../store.ts';

/** The second that a moment falls in: the wire knows no finer one. */
export const secondOf = (ms: number): number => Math.floor(ms / 1_000);

/**
 * Where a page of at most `limit` reports ends, given the second of each and of one more. Clients continue at the last second + 1: a page
 * that ends within a second would lose the rest of it. If one second fills the whole page, the page ends within it.
 */
export function wholeSecondsEnd(secondAt: (i: number) => number | undefined, limit: number): number {
  const tooMany = secondAt(limit);
  let end = limit;
  while (end > 0 && secondAt(end - 1) === tooMany) end--;
  return end === 0 ? limit : end;
}

/** All of it but the digits of the full report and the closing. */
const renderHead = (feedId: FeedId, { validFromMs, observationsMs }: Window): string =>
  `{"feedID":"${feedId}","validFromTimestamp":${secondOf(validFromMs)},"observationsTimestamp":${secondOf(observationsMs)},"fullReport":"0x`;

const closing = '"}';

/** One report as on the wire. */
export const renderReport = (report: StoredReport): string =>
  `${renderHead(report.feedId, report)}${hexOf(report.fullReport)}${closing}`;

/** Writes one report as on the wire, in pieces: made of one text it would be copied once more. Returns where it ends. */
export function writeRendered(text: Buffer, start: number, report: StoredReport): number {
  const digitsAt = start + text.write(renderHead(report.feedId, report), start, 'latin1');
  const end = digitsAt + text.write(hexOf(report.fullReport), digitsAt, 'latin1');
  return end + text.write(closing, end, 'latin1');
}

/** The same of a report whose bytes are there as hex digits. */
export function writeDigits(text: Buffer, start: number, feedId: FeedId, window: Window, digits: Buffer): number {
  const digitsAt = start + text.write(renderHead(feedId, window), start, 'latin1');
  text.set(digits, digitsAt);
  const end = digitsAt + digits.length;
  return end + text.write(closing, end, 'latin1');
}

/** Room is made for so many reports at first: pages of the newest reports have few. */
const fewReports = 32;

/** Renders reports one after the other into one Buffer, joined by commas; `countMax` of them at most. */
export function createRendering(countMax: number) {
  let text = Buffer.alloc(0);
  const ends: number[] = [];
  return {
    add: (report: StoredReport): void => {
      let end = ends.at(-1) ?? 0;
      const room = 1 + renderedLengthMax(report.feedId, report.fullReport.length);
      if (end + room > text.length) {
        const more = Math.min(countMax - ends.length, ends.length === 0 ? fewReports : countMax);
        const larger = Buffer.allocUnsafe(end + Math.max(1, more) * room);
        larger.set(text);
        text = larger;
      }
      if (end > 0) text[end++] = comma.charCodeAt(0);
      ends.push(writeRendered(text, end, report));
    },
    /** The first so many. */
    take: (count: number): Buffer => text.subarray(0, ends[count - 1] ?? 0),
  };
}

/** Reports as on the wire, joined by commas. */
export function renderReports(reports: readonly StoredReport[]): Buffer {
  const { add, take } = createRendering(reports.length);
  reports.forEach(add);
  return take(reports.length);
}

const comma = ',';

/** Rendered lists of reports as one. */
export function joinRendered(lists: readonly Buffer[]): Buffer {
  const between = Buffer.from(comma);
  return Buffer.concat(lists.flatMap((list, i) => (i === 0 ? [list] : [between, list])));
}

/** The newest report of a stream, rendered for the wire. */
export const renderLatest = (report: StoredReport): LatestReport => ({
  validFromMs: report.validFromMs,
  observationsMs: report.observationsMs,
  tag: reportTag(report.fullReport),
  json: `{"report":${renderReport(report)}}`,
});

const digitsAfter = '"fullReport":"0x';

/** The tag of a rendered report. */
export function tagOfRendered(json: Buffer): string {
  const start = json.indexOf(digitsAfter) + digitsAfter.length;
  return reportTag(Buffer.from(json.toString('latin1', start, json.length - closing.length), 'hex'));
}

const hexOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).toString('hex');

/** How many characters a report takes at most, all ASCII, whatever its window: stored times are milliseconds of 48 bits. */
export const renderedLengthMax = (feedId: FeedId, fullReportBytes: number): number =>
  longestHead + feedId.length + 2 * fullReportBytes + closing.length;

const longestHead = renderHead('' as FeedId, { validFromMs: 2 ** 48 - 1, observationsMs: 2 ** 48 - 1 }).length; // only its length counts
