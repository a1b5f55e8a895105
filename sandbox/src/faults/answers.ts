// Changes the reports in an answer: leaves some out, as if the store did not have them, and makes others bad.
import { type FeedId, type Route, type RouteName, routes } from '@sealpost/protocol';
import type { Answer } from '@sealpost/server/http/answer';
import { type MissReason, missError, reasonOf } from '@sealpost/server/http/routes/report-at';
import type { AdminSnapshot } from '@sealpost/server/store/admin-snapshot';
import { coverageOf, windowsTouching } from '@sealpost/server/store/coverage';
import { renderReport } from '@sealpost/server/store/format/rendered-report';
import { type CoverageReader, readHourCoverage } from '@sealpost/server/store/hour-coverage';
import {
  type Neighbours,
  type ReportStore,
  reportTag,
  type StoredReport,
  type Window,
} from '@sealpost/server/store/store';
import { type BadReports, badReportKinds, observedMs, type SentReport } from './bad-reports.ts';
import type { AppliedFault, Decisions, FaultSubject, HidingFault } from './decisions.ts';

export type AnswerParts = {
  readonly decisions: Decisions;
  readonly badReports: BadReports;
  readonly reports: Pick<ReportStore, 'at' | 'latest' | 'neighbours' | 'newestMs' | 'windows'>;
  readonly admin: () => AdminSnapshot;
};

/** A request whose answer may have reports. */
export type AnsweredRequest = FaultSubject & { readonly query: Readonly<Record<string, string>> };

/** Hears which faults acted. */
type Noted = (fault: AppliedFault) => void;

const hidingKinds = ['stop', 'gap'] as const;
const allKinds = [...badReportKinds, ...hidingKinds, 'missing'] as const;

/** How an answer has reports: one, several, or what is made from them. */
const forms = {
  reportAt: 'one',
  reportLatest: 'one',
  reportLatestMany: 'several',
  reportBulk: 'several',
  reportPage: 'page',
  reportCoverage: 'coverage',
  reportCoverageMany: 'streamCoverage',
  reportCandles: 'candles',
  reportCandlesMany: 'streamCandles',
} as const satisfies Partial<Record<RouteName, string>>;

/** What was looked back for at most, in reports that are hidden. */
const hiddenMax = 1_000;

export function createAnswerChanges(parts: AnswerParts) {
  const { decisions } = parts;
  return async (answer: Answer, request: AnsweredRequest, noted: Noted): Promise<Answer> => {
    const { route } = request;
    if (route === undefined || !Object.hasOwn(forms, route) || !decisions.has(allKinds)) return answer;
    const missing = decisions.all('missing', request);
    missing.forEach(noted);
    const isMissing = (feedId: FeedId): boolean => missing.some(({ isFor }) => isFor(feedId));
    const asked: Asked = { ...request, answer, isMissing, noted };
    return change[forms[route as keyof typeof forms]](parts, asked); // it is a key
  };
}

type Asked = AnsweredRequest & {
  readonly answer: Answer;
  readonly isMissing: (feedId: FeedId) => boolean;
  readonly noted: Noted;
};

type Change = (parts: AnswerParts, asked: Asked) => Promise<Answer>;

const textOf = (body: Answer['body']): string => {
  if (body === undefined || typeof body === 'string') return body ?? '';
  return (Buffer.isBuffer(body) ? body : Buffer.concat(body)).toString();
};

/** The same answer with another body. */
const withText = ({ packed, ascii, ...answer }: Answer, body: string): Answer => ({ ...answer, body });

const hiding = ({ decisions }: AnswerParts, asked: Asked, report: SentReport): HidingFault | undefined => {
  const found = decisions.has(hidingKinds) ? decisions.hiding(asked, report.feedID, observedMs(report)) : undefined;
  if (found !== undefined) asked.noted(found);
  return found;
};

const bad = <R extends SentReport>({ badReports }: AnswerParts, { route, account, noted }: Asked, report: R): R =>
  badReports(report, { route, account }, false, noted)[0] ?? report;

const miss = ({ admin }: AnswerParts, feedId: FeedId, neighbours: Neighbours) => {
  const context = { admin: admin(), retentionDays: 0, reports: { latest: () => undefined } };
  return missError(context, feedId, neighbours);
};

const noNeighbours: Neighbours = { previous: undefined, next: undefined };

/** The visible reports before and after those that a fault hides. */
const around = async ({ reports }: AnswerParts, feedId: FeedId, { fromMs, toMs }: HidingFault): Promise<Neighbours> => {
  const { previous } = await reports.neighbours(feedId, Math.ceil(fromMs / 1_000));
  const next = Number.isFinite(toMs) ? (await reports.neighbours(feedId, Math.ceil(toMs / 1_000))).next : undefined;
  return { previous, next };
};

const toSent = (report: StoredReport): SentReport => JSON.parse(renderReport(report));

/** The newest report that no fault hides. */
const newestVisible = async (
  parts: AnswerParts,
  asked: Asked,
  feedId: FeedId,
  hidden: HidingFault,
  hiddenMs: number,
) => {
  let [fault, observationsMs]: readonly [HidingFault, number] = [hidden, hiddenMs];
  for (let i = 0; i < hiddenMax; i += 1) {
    const isWhole = fault.fault.probability === undefined;
    const before = Math.ceil((isWhole ? fault.fromMs : observationsMs) / 1_000);
    const { previous } = await parts.reports.neighbours(feedId, before);
    if (previous === undefined) return undefined;
    const [found] = await parts.reports.at([feedId], Math.floor(previous.observationsMs / 1_000));
    if (found === undefined) return undefined;
    const again = parts.decisions.hiding(asked, feedId, found.observationsMs);
    if (again === undefined) return toSent(found);
    [fault, observationsMs] = [again, found.observationsMs];
  }
  return undefined;
};

/** The report of an answer with one, or of the 304 instead of it. */
const reportOf = async (
  { reports }: AnswerParts,
  { answer, route, feedIds, query }: Asked,
): Promise<SentReport | undefined> => {
  if (answer.body !== undefined) return JSON.parse(textOf(answer.body)).report;
  const [feedId] = feedIds;
  if (feedId === undefined) return undefined;
  if (route === 'reportLatest') return JSON.parse(reports.latest(feedId)?.json ?? '{}').report;
  const [found] = await reports.at([feedId], Number(query.timestamp));
  return found && toSent(found);
};

const changeOne: Change = async (parts, asked) => {
  const { answer, route } = asked;
  const report = await reportOf(parts, asked);
  if (report === undefined) return answer;
  const { feedID } = report;
  if (asked.isMissing(feedID)) throw miss(parts, feedID, noNeighbours);
  const hidden = hiding(parts, asked, report);
  if (hidden !== undefined && route === 'reportAt') throw miss(parts, feedID, await around(parts, feedID, hidden));
  const visible = hidden ? await newestVisible(parts, asked, feedID, hidden, observedMs(report)) : report;
  if (visible === undefined) throw miss(parts, feedID, noNeighbours);
  if (answer.body === undefined && visible === report) return answer; // a 304 has no report to make bad
  const sent = bad(parts, asked, visible);
  if (sent === report) return answer;
  const tag = reportTag(Buffer.from(sent.fullReport.slice(2), 'hex'));
  return { ...withText(answer, JSON.stringify({ report: sent })), status: 200, tag };
};

type Missing = { readonly feedID: string; readonly reason: MissReason };

const changeSeveral: Change = async (parts, asked) => {
  const { answer, route, query } = asked;
  const before = JSON.parse(textOf(answer.body)) as { reports: SentReport[]; missing?: Missing[] }; // our own answer
  const missing: Missing[] = [...(before.missing ?? [])];
  const reports: SentReport[] = [];
  for (const report of before.reports) {
    const { feedID } = report;
    const hidden = asked.isMissing(feedID) ? undefined : hiding(parts, asked, report);
    const visible =
      hidden && route === 'reportLatestMany'
        ? await newestVisible(parts, asked, feedID, hidden, observedMs(report))
        : hidden || asked.isMissing(feedID)
          ? undefined
          : report;
    if (visible !== undefined) reports.push(bad(parts, asked, visible));
    else {
      const isAt = hidden !== undefined && route === 'reportBulk';
      missing.push({ feedID, reason: isAt ? reasonOf(await around(parts, feedID, hidden)) : 'no_reports' });
    }
  }
  if (reports.length === before.reports.length && reports.every((report, i) => report === before.reports[i]))
    return answer;
  const isPartial = reports.length < before.reports.length || answer.status === 206;
  const told = isPartial && query.missing === 'true' ? { missing } : {};
  return { ...withText(answer, JSON.stringify({ reports, ...told })), status: isPartial ? 206 : 200 };
};

const changePage: Change = async (parts, asked) => {
  const { answer, query } = asked;
  const { reports: before } = JSON.parse(textOf(answer.body)) as { reports: SentReport[] }; // our own answer
  const hides = before.map((report) => (asked.isMissing(report.feedID) ? 'missing' : hiding(parts, asked, report)));
  const reports = before.flatMap((report, i) => (hides[i] === undefined ? [bad(parts, asked, report)] : []));
  if (reports.length === before.length && reports.every((report, i) => report === before[i])) return answer;
  const last = hides.at(-1);
  const isLast = last !== undefined && (last === 'missing' || !Number.isFinite(last.toMs));
  const { path }: Route = routes.reportPage;
  const target = `${path}?feedID=${asked.feedIds[0]}&startTimestamp=${query.startTimestamp}&limit=${query.limit ?? before.length}`;
  const headers = isLast ? ['Link', `<${target}>; rel="last"`] : (answer.headers ?? []);
  return { ...withText(answer, JSON.stringify({ reports })), headers };
};

const changeCoverage: Change = async (parts, asked) => {
  const [feedId] = asked.feedIds;
  const isAll = feedId !== undefined && asked.isMissing(feedId);
  if (feedId === undefined || !(isAll || parts.decisions.has(hidingKinds))) return asked.answer;
  const range = { from: Number(asked.query.from), to: Number(asked.query.to) };
  const isVisible = ({ observationsMs }: Window): boolean =>
    !isAll && parts.decisions.hiding(asked, feedId, observationsMs) === undefined;
  async function* visible() {
    for await (const page of windowsTouching(parts.reports, feedId as FeedId, range)) yield page.filter(isVisible); // checked above
  }
  const coverage = await coverageOf(visible(), range);
  return withText(asked.answer, JSON.stringify(coverage));
};

/** When the newest report that no fault hides was observed. */
const newestVisibleMs = async (parts: AnswerParts, asked: Asked, feedId: FeedId): Promise<number | undefined> => {
  const newestMs = asked.isMissing(feedId) ? undefined : parts.reports.newestMs(feedId);
  const hidden = newestMs === undefined ? undefined : parts.decisions.hiding(asked, feedId, newestMs);
  if (newestMs === undefined || hidden === undefined) return newestMs;
  const visible = await newestVisible(parts, asked, feedId, hidden, newestMs);
  return visible && observedMs(visible);
};

/** Measured again from the visible reports, without counts of ingest. */
const changeStreamCoverage: Change = async (parts, asked) => {
  if (!(asked.feedIds.some(asked.isMissing) || parts.decisions.has(hidingKinds))) return asked.answer;
  const { reports, decisions } = parts;
  const newest = new Map<FeedId, number | undefined>();
  for (const feedId of asked.feedIds) newest.set(feedId, await newestVisibleMs(parts, asked, feedId));
  const reader: CoverageReader = {
    windows: reports.windows,
    neighbours: reports.neighbours,
    newestMs: (feedId) => newest.get(feedId),
    isVisible: (feedId, { observationsMs }) => decisions.hiding(asked, feedId, observationsMs) === undefined,
    hourCounts: async () => new Map(),
  };
  const range = { from: Number(asked.query.from), to: Number(asked.query.to) };
  const streams = [];
  for (const feedID of asked.feedIds) streams.push({ feedID, ...(await readHourCoverage(reader, feedID, range)) });
  return withText(asked.answer, JSON.stringify({ streams }));
};

type SentCandle = { readonly timestamp: number };

/** Without the buckets all of whose reports a fault hides; one that began before it still has the reports after. */
const visibleCandles = (
  { decisions }: AnswerParts,
  asked: Asked,
  feedId: FeedId,
  candles: readonly SentCandle[],
): readonly SentCandle[] => {
  if (asked.isMissing(feedId)) return [];
  const endMs = (timestamp: number): number => (timestamp + Number(asked.query.resolution)) * 1_000;
  return candles.filter(({ timestamp }) => {
    const hidden = decisions.hiding(asked, feedId, timestamp * 1_000);
    return !(hidden !== undefined && hidden.fault.probability === undefined && hidden.toMs >= endMs(timestamp));
  });
};

const changeCandles: Change = async (parts, asked) => {
  const [feedId] = asked.feedIds;
  if (feedId === undefined || !(asked.isMissing(feedId) || parts.decisions.has(hidingKinds))) return asked.answer;
  const { candles } = JSON.parse(textOf(asked.answer.body)) as { candles: SentCandle[] }; // our own answer
  return withText(asked.answer, JSON.stringify({ candles: visibleCandles(parts, asked, feedId, candles) }));
};

const changeStreamCandles: Change = async (parts, asked) => {
  if (!(asked.feedIds.some(asked.isMissing) || parts.decisions.has(hidingKinds))) return asked.answer;
  type Entry = { readonly feedID: FeedId; readonly candles: SentCandle[] };
  const { streams } = JSON.parse(textOf(asked.answer.body)) as { streams: Entry[] }; // our own answer
  const left = streams.map(({ feedID, candles }) => ({
    feedID,
    candles: visibleCandles(parts, asked, feedID, candles),
  }));
  return withText(asked.answer, JSON.stringify({ streams: left }));
};

const change: Readonly<Record<(typeof forms)[keyof typeof forms], Change>> = {
  one: changeOne,
  several: changeSeveral,
  page: changePage,
  coverage: changeCoverage,
  streamCoverage: changeStreamCoverage,
  candles: changeCandles,
  streamCandles: changeStreamCandles,
};
