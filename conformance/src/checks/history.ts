// The history of a stream, as far back as it goes: pages, single reports and bulk agree everywhere, and whole pages are in order and complete.
import type { ReportJson } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { ReceivedAnswer } from '../exchange.ts';
import { reportsOf } from '../reports.ts';
import { isAlwaysOn, targets } from '../sample.ts';
import { demand, demandStatus, SkipError } from '../verdict.ts';
import { requireReports } from './reads.ts';

/** How far back the history is read, in seconds: from the newest report to four weeks. */
const depths = [0, 60, 150, 330, 900, 3_600, 6 * 3_600, 2 * 86_400, 14 * 86_400, 28 * 86_400] as const;

/** A stream whose reports are told apart by their second, one that is live before others. */
const historyStream = async ({ sample }: CheckContext) => {
  const streams = (await sample.reporting()).filter(({ feedId }) => feedId[2] === '0');
  const stream = streams.find(({ entry }) => isAlwaysOn(entry) !== false) ?? streams[0];
  if (stream === undefined) throw new SkipError('Every sampled stream has several reports per second.');
  return stream;
};

type Found = { readonly start: number; readonly answer: ReceivedAnswer; readonly report: ReportJson | undefined };

/** The first report of a page that begins at each depth, as far back as pages are answered. */
const readDepths = async (context: CheckContext): Promise<readonly Found[]> => {
  const { feedId, newest } = await historyStream(context);
  const found: Found[] = [];
  for (const depth of depths) {
    const start = newest.observationsTimestamp - depth;
    if (start < 0) break;
    const answer = await context.ask(targets.page(feedId, start, 1));
    if (answer.status === 400) break; // older than what the deployment keeps
    demandStatus(answer, [200]);
    found.push({ start, answer, report: requireReports(answer)[0] });
  }
  return found;
};

const known = new WeakMap<CheckContext, Promise<readonly Found[]>>();

/** Read once for all checks of a run. */
const depthsOf = (context: CheckContext): Promise<readonly Found[]> => {
  const reading = known.get(context) ?? readDepths(context);
  known.set(context, reading);
  return reading;
};

/** A page begins with the first report from its start on, so that no later report that is known comes before it. */
const pageHistory: Check['run'] = async (context) => {
  let { observationsTimestamp: first } = (await historyStream(context)).newest;
  for (const { start, report, answer } of await depthsOf(context)) {
    const at = report?.observationsTimestamp ?? Number.POSITIVE_INFINITY;
    demand(
      at >= start && at <= first,
      `a report observed from ${start} to ${first}, where there is one`,
      () => (report === undefined ? 'an empty list' : `one observed at ${at}`),
      answer,
    );
    first = at;
  }
};

/** The distinct reports at the depths; newest first. */
const reportsAtDepths = async (context: CheckContext): Promise<readonly ReportJson[]> => {
  const reports = (await depthsOf(context)).flatMap(({ report }) => report ?? []);
  return reports.filter((one, i) => one.observationsTimestamp !== reports[i - 1]?.observationsTimestamp);
};

/** Fails unless the answer has the report, or none and pages no longer have it either: the oldest ones are deleted. */
const demandReport = async ({ ask }: CheckContext, answer: ReceivedAnswer, report: ReportJson): Promise<void> => {
  const { feedID, observationsTimestamp, fullReport } = report;
  const found = reportsOf(answer.json)[0];
  if (found?.fullReport === fullReport) return;
  const isGone = async () =>
    reportsOf((await ask(targets.page(feedID, observationsTimestamp, 1))).json)[0]?.fullReport !== fullReport;
  if (found === undefined && (await isGone())) return;
  demand(
    false,
    `the report observed at ${observationsTimestamp}, which pages have`,
    () => (found === undefined ? `status ${answer.status} without a report` : 'another report'),
    answer,
  );
};

const inHistory =
  (target: (report: ReportJson) => string): Check['run'] =>
  async (context) => {
    for (const report of await reportsAtDepths(context))
      await demandReport(context, await context.ask(target(report)), report);
  };

/** Reports that whole pages are read for. */
const wholeWanted = 1_500;
const pagesMax = 3;
const limitMax = 1_000;
const limitSafe = 100;
const gapsMax = 5;

/** Pages as large as the deployment allows, if one arrives in time. */
const limitFor = async (context: CheckContext, feedId: string, start: number): Promise<number> => {
  const trial = await context.ask(targets.page(feedId, start, limitSafe));
  if (trial.status === 400) return 10;
  const isFast = (trial.transferMs + trial.firstByteMs) * (limitMax / limitSafe) < context.rules.slowAfterMs;
  if (!isFast) return limitSafe;
  return (await context.ask(targets.page(feedId, start, limitMax))).status === 200 ? limitMax : limitSafe;
};

/** Seconds from one report to the next, by the last of them. */
const paceOf = async ({ ask }: CheckContext, feedId: string, newest: number): Promise<number> => {
  const times = reportsOf((await ask(targets.page(feedId, Math.max(0, newest - 60), 10))).json).map(
    ({ observationsTimestamp }) => observationsTimestamp,
  );
  const [first, last] = [times[0] ?? newest, times.at(-1) ?? newest];
  return last > first ? (last - first) / (times.length - 1) : 60;
};

type WholePage = { readonly answer: ReceivedAnswer; readonly reports: readonly ReportJson[] };

/** Reads on from a start, page by page. */
const readPages = async ({ ask }: CheckContext, feedId: string, start: number, limit: number) => {
  const pages: WholePage[] = [];
  let next = start;
  while (pages.length < pagesMax) {
    const answer = await ask(targets.page(feedId, next, limit));
    if (answer.status === 400 && pages.length === 0)
      throw new SkipError('The oldest reports were deleted while they were read.');
    demandStatus(answer, [200]);
    const reports = requireReports(answer);
    const last = reports.at(-1);
    if (last === undefined) break;
    demand(reports.length <= limit, `at most ${limit} reports`, () => `${reports.length}`, answer);
    let before = next - 1;
    for (const [i, { feedID, observationsTimestamp: at }] of reports.entries()) {
      demand(feedID === feedId, `reports of ${feedId}`, () => feedID, answer);
      demand(at > before, `an observation after ${before} as number ${i + 1}`, () => `${at}`, answer);
      before = at;
    }
    pages.push({ answer, reports });
    next = last.observationsTimestamp + 1;
  }
  return pages;
};

/** The second after a report at which the next one of the pages is not yet valid. */
const gapsOf = (reports: readonly ReportJson[]): readonly number[] =>
  reports.flatMap(({ observationsTimestamp }, i) => {
    const next = reports[i + 1];
    return next !== undefined && next.validFromTimestamp > observationsTimestamp + 1 ? [observationsTimestamp + 1] : [];
  });

const spread = <T>(values: readonly T[], max: number): readonly T[] =>
  values.length <= max ? values : values.filter((_, i) => i % Math.ceil(values.length / max) === 0);

const wholePages: Check['run'] = async (context) => {
  const { feedId, newest } = await historyStream(context);
  const newestAt = newest.observationsTimestamp;
  const backSeconds = Math.min(86_400, Math.ceil(wholeWanted * (await paceOf(context, feedId, newestAt))));
  const [oldest] = await reportsAtDepths(context).then((reports) => reports.slice(-1));
  const start = Math.max(newestAt - backSeconds, oldest?.observationsTimestamp ?? newestAt - 60);
  const limit = await limitFor(context, feedId, start);
  const pages = await readPages(context, feedId, start, limit);
  if (pages.length === 0) throw new SkipError(`There is no report from ${start} on.`);
  const reports = pages.flatMap((page) => page.reports);
  for (const second of spread(gapsOf(reports), gapsMax)) {
    const answer = await context.ask(targets.at(feedId, second));
    const report = reportsOf(answer.json)[0];
    const isLeftOut = report !== undefined && !reports.some(({ fullReport }) => fullReport === report.fullReport);
    // One that was late may have come in between.
    const page = isLeftOut ? await context.ask(targets.page(feedId, start, limit)) : undefined;
    const isThere = reportsOf(page?.json).some(({ fullReport }) => fullReport === report?.fullReport);
    demand(
      !isLeftOut || isThere,
      'every report of the stream',
      () => `the one observed at ${report?.observationsTimestamp} is left out`,
      pages.find((one) => (one.reports.at(-1)?.observationsTimestamp ?? 0) >= second)?.answer,
    );
  }
  for (const { reports: read } of pages.slice(0, 2)) {
    const last = read.at(-1);
    if (last === undefined) break;
    await demandReport(context, await context.ask(targets.at(feedId, last.observationsTimestamp)), last);
  }
};

/** A page that begins in the middle of another one has the same reports. */
const samePages: Check['run'] = async (context) => {
  const { feedId, newest } = await historyStream(context);
  const start = Math.max(0, newest.observationsTimestamp - 90);
  const whole = await context.ask(targets.page(feedId, start, limitSafe));
  if (whole.status === 400) throw new SkipError(`The deployment has no pages of ${limitSafe} reports.`);
  const reports = reportsOf(whole.json);
  const middle = reports[Math.floor(reports.length / 2)];
  if (middle === undefined || reports.length < 4) throw new SkipError('The last 90 s have fewer than four reports.');
  const from = reports.slice(reports.indexOf(middle));
  const answer = await context.ask(targets.page(feedId, middle.observationsTimestamp, from.length));
  const other = reportsOf(answer.json);
  const at = from.findIndex(({ fullReport }, i) => other[i]?.fullReport !== fullReport);
  demand(
    at === -1,
    `the report observed at ${from[at]?.observationsTimestamp} as number ${at + 1}, as in a page that begins earlier`,
    () => (other[at] === undefined ? 'none' : `one observed at ${other[at]?.observationsTimestamp}`),
    answer,
  );
};

const sequential = 'an array of Report objects, sequential for the one stream, starting at startTimestamp.';

export const historyChecks: readonly Check[] = [
  {
    id: 'page.history',
    title: 'Pages begin with the first report from their start on, however long ago it is',
    source: 'specification',
    sentence: sequential,
    run: pageHistory,
  },
  {
    id: 'page.whole',
    title: 'Large pages, one after the other: in order, each report once, none left out',
    source: 'specification',
    sentence: sequential,
    run: wholePages,
  },
  {
    id: 'page.same-start',
    title: 'A page that begins in the middle of another one has the same reports',
    source: 'specification',
    sentence: sequential,
    run: samePages,
  },
  {
    id: 'at.history',
    title: 'Reports of the past are returned, however long ago they are',
    source: 'specification',
    sentence: 'Moment for which the report is returned',
    run: inHistory(({ feedID, observationsTimestamp }) => targets.at(feedID, observationsTimestamp)),
  },
  {
    id: 'bulk.history',
    title: 'Reports of the past are returned in bulk, however long ago they are',
    source: 'specification',
    sentence: 'Moment for which the reports are returned',
    run: inHistory(({ feedID, observationsTimestamp }) => targets.bulk([feedID], observationsTimestamp)),
  },
];
