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
export const wholeSecondsEnd = (secondAt: (i: number) => number | undefined, limit: number): number => {
  const tooMany = secondAt(limit);
  let end = limit;
  while (end > 0 && secondAt(end - 1) === tooMany) end--;
  return end === 0 ? limit : end;
};

/** All of it but the digits of the full report and the closing. */
const renderHead = (feedId: FeedId, { validFromMs, observationsMs }: Window): string =>
  `{"feedID":"${feedId}","validFromTimestamp":${secondOf(validFromMs)},"observationsTimestamp":${secondOf(observationsMs)},"fullReport":"0x`;

const closing = '"}';

/** One report as on the wire. */
export const renderReport = (report: StoredReport): string =>
  `${renderHead(report.feedId, report)}${hexOf(report.fullReport)}${closing}`;

/** Writes one report as on the wire; returns where it ends. Three pieces are written sooner than one text is made of them, and leave less garbage. */
export const writeRendered = (text: Buffer, start: number, report: StoredReport): number => {
  const digitsAt = start + text.write(renderHead(report.feedId, report), start, 'latin1');
  const end = digitsAt + text.write(hexOf(report.fullReport), digitsAt, 'latin1');
  return end + text.write(closing, end, 'latin1');
};

/** Reports as on the wire, joined by commas. */
export const renderReports = (reports: readonly StoredReport[]): Buffer => {
  const length = reports.reduce(
    (sum, report) => sum + renderedLength(report.feedId, report, report.fullReport.length),
    Math.max(0, reports.length - 1),
  );
  const text = Buffer.allocUnsafeSlow(length);
  let end = 0;
  for (const report of reports) {
    if (end > 0) text[end++] = comma.charCodeAt(0);
    end = writeRendered(text, end, report);
  }
  return text;
};

const comma = ',';

/** Rendered lists of reports as one. */
export const joinRendered = (lists: readonly Buffer[]): Buffer => {
  const between = Buffer.from(comma);
  return Buffer.concat(lists.flatMap((list, i) => (i === 0 ? [list] : [between, list])));
};

/** The newest report of a stream, rendered for the wire. */
export const renderLatest = (report: StoredReport): LatestReport => ({
  validFromMs: report.validFromMs,
  observationsMs: report.observationsMs,
  tag: reportTag(report.fullReport),
  json: `{"report":${renderReport(report)}}`,
});

const digitsAfter = '"fullReport":"0x';

/** The tag of a rendered report. */
export const tagOfRendered = (json: Buffer): string => {
  const start = json.indexOf(digitsAfter) + digitsAfter.length;
  return reportTag(Buffer.from(json.toString('latin1', start, json.length - closing.length), 'hex'));
};

const hexOf = (bytes: Uint8Array): string =>
  (Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)).toString('hex');

const namesLength = renderHead('' as FeedId, { validFromMs: 0, observationsMs: 0 }).length - 2; // only its length counts

/** Writes a report as on the wire, given the hex digits of the full report; returns where it ends. */
export type WriteReport = (text: Buffer, start: number, window: Window, digits: Buffer) => number;

/** Makes a writer of a stream's reports: their heads differ in two times alone, and a copy takes a fifth of putting a text together. */
export const createReportRenderer = (feedId: FeedId): WriteReport => {
  const someTime = { validFromMs: tenDigitsMin * 1_000, observationsMs: tenDigitsMin * 1_000 };
  const head = Buffer.from(renderHead(feedId, someTime), 'latin1');
  const validFromAt = head.indexOf(`:${tenDigitsMin}`) + 1;
  const observationsAt = head.indexOf(`:${tenDigitsMin}`, validFromAt) + 1;
  const writeHead = (text: Buffer, start: number, window: Window): number => {
    const validFrom = secondOf(window.validFromMs);
    const observations = secondOf(window.observationsMs);
    if (!hasTenDigits(validFrom) || !hasTenDigits(observations))
      return start + text.write(renderHead(feedId, window), start, 'latin1');
    text.set(head, start);
    writeTenDigits(text, start + validFromAt, validFrom);
    writeTenDigits(text, start + observationsAt, observations);
    return start + head.length;
  };
  return (text, start, window, digits) => {
    const digitsAt = writeHead(text, start, window);
    text.set(digits, digitsAt);
    const end = digitsAt + digits.length;
    // Two bytes are written sooner than a call is made.
    text[end] = closing.charCodeAt(0);
    text[end + 1] = closing.charCodeAt(1);
    return end + closing.length;
  };
};

const tenDigitsMin = 1e9;
/** 2001 to 2106: what fits into 32 bits is divided as an integer. */
const hasTenDigits = (seconds: number): boolean => seconds >= tenDigitsMin && seconds < 2 ** 32;

const writeTenDigits = (text: Buffer, at: number, seconds: number): void => {
  let rest = seconds >>> 0;
  for (let i = at + 9; i >= at; i--) {
    const tenth = (rest / 10) >>> 0;
    text[i] = rest - tenth * 10 + zero;
    rest = tenth;
  }
};

const zero = '0'.charCodeAt(0);

/** How many characters a report takes at most, whatever its window. */
export const renderedLengthMax = (feedId: FeedId, fullReportBytes: number): number =>
  namesLength + feedId.length + 2 * secondsDigitsMax + 2 * fullReportBytes + closing.length;

/** Stored times are milliseconds of 48 bits. */
const secondsDigitsMax = 12;

/** How many characters a report takes, all ASCII, without its bytes. */
export const renderedLength = (feedId: FeedId, window: Window, fullReportBytes: number): number =>
  namesLength +
  feedId.length +
  digitsOf(secondOf(window.validFromMs)) +
  digitsOf(secondOf(window.observationsMs)) +
  2 * fullReportBytes +
  closing.length;

const digitsOf = (seconds: number): number => (hasTenDigits(seconds) ? 10 : String(seconds).length); // without making a text
