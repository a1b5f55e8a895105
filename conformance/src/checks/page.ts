// The operation that returns sequential reports of a stream: order, start, limit, and reading on.
import type { ReportJson } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { ReceivedAnswer } from '../exchange.ts';
import { reportsOf } from '../reports.ts';
import { targets } from '../sample.ts';
import { demand, demandStatus, SkipError } from '../verdict.ts';
import { argumentChecks, requireReports } from './reads.ts';

/** How far back pages begin: a few windows, in seconds. */
const backSeconds = 30;

const readPage = async ({ ask }: CheckContext, feedId: string, start: number, limit?: number) => {
  const answer = await ask(targets.page(feedId, start, limit));
  return { answer, reports: requirePage(answer, feedId) };
};

const requirePage = (answer: ReceivedAnswer, feedId: string): readonly ReportJson[] => {
  demandStatus(answer, [200]);
  const reports = requireReports(answer);
  for (const report of reports) {
    demand(report.feedID === feedId, `reports of ${feedId}`, () => report.feedID, answer);
  }
  return reports;
};

/** A stream with a start at which there are several reports. */
const pagedStream = async (context: CheckContext) => {
  for (const { feedId, newest } of await context.sample.reporting()) {
    const start = Math.max(0, newest.observationsTimestamp - backSeconds);
    const { reports } = await readPage(context, feedId, start, 5);
    if (reports.length >= 3) return { feedId, start, newest };
  }
  throw new SkipError(`No sampled stream has three reports within ${backSeconds} s.`);
};

const ascending: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  const { answer, reports } = await readPage(context, feedId, start, 20);
  const times = reports.map(({ observationsTimestamp }) => observationsTimestamp);
  const at = times.findIndex((time, i) => i > 0 && time < (times[i - 1] ?? 0));
  demand(at === -1, 'observationsTimestamp in ascending order', () => `${times[at]} after ${times[at - 1]}`, answer);
};

const startsAt: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  const whole = await readPage(context, feedId, start, 5);
  const early = whole.reports.find(({ observationsTimestamp }) => observationsTimestamp < start);
  demand(
    early === undefined,
    `no report from before ${start}`,
    () => String(early?.observationsTimestamp),
    whole.answer,
  );
  const third = whole.reports[2]?.observationsTimestamp ?? start;
  const { answer, reports } = await readPage(context, feedId, third, 1);
  demand(
    reports[0]?.observationsTimestamp === third,
    `the report observed at ${third} first`,
    () => String(reports[0]?.observationsTimestamp ?? 'none'),
    answer,
  );
};

const limited: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  for (const limit of [1, 2, 3]) {
    const { answer, reports } = await readPage(context, feedId, start, limit);
    demand(
      reports.length > 0 && reports.length <= limit,
      `1 to ${limit} reports`,
      () => `${reports.length} reports`,
      answer,
    );
  }
};

const unlimited: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  const { answer, reports } = await readPage(context, feedId, start);
  demand(reports.length > 0, 'at least one report', () => 'none', answer);
};

/** Reads on after the last report, as SDKs do, and compares with one large page. */
const continued: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  const whole = (await readPage(context, feedId, start, 8)).reports;
  const until = whole.at(-1)?.observationsTimestamp ?? start;
  const parts: ReportJson[] = [];
  let next = start;
  let last = await readPage(context, feedId, next, 3);
  for (let page = 0; page < 8 && last.reports.length > 0 && next <= until; page += 1) {
    parts.push(...last.reports);
    next = (last.reports.at(-1)?.observationsTimestamp ?? next) + 1;
    if (next <= until) last = await readPage(context, feedId, next, 3);
  }
  const read = new Set(parts.map(({ fullReport }) => fullReport));
  const lost = whole.find(
    ({ fullReport, observationsTimestamp }) => observationsTimestamp < next && !read.has(fullReport),
  );
  demand(
    lost === undefined,
    'every report of the large page',
    () => `the one observed at ${lost?.observationsTimestamp} is missing`,
    last.answer,
  );
  demand(read.size === parts.length, 'each report once', () => `${parts.length - read.size} twice`, last.answer);
};

const sameAsAt: Check['run'] = async (context) => {
  const { feedId, start } = await pagedStream(context);
  const { reports } = await readPage(context, feedId, start, 3);
  for (const report of reports.slice(0, 2)) {
    if (feedId[2] !== '0') throw new SkipError('The sampled stream has several reports per second.');
    const answer = await context.ask(targets.at(feedId, report.observationsTimestamp));
    const [single] = reportsOf(answer.json);
    demand(
      single?.fullReport === report.fullReport,
      'the report of the page',
      () => (single === undefined ? `status ${answer.status}` : 'another report'),
      answer,
    );
  }
};

const future: Check['run'] = async (context) => {
  const [{ feedId, newest }] = await context.sample.reporting();
  const { answer, reports } = await readPage(context, feedId, newest.observationsTimestamp + 86_400, 5);
  demand(reports.length === 0, 'an empty list', () => `${reports.length} reports`, answer);
};

/** Rejected, or answered with as many as the deployment gives at once. */
const hugeLimit: Check['run'] = async ({ ask, sample }) => {
  const [{ feedId, newest }] = await sample.reporting();
  const answer = await ask(targets.page(feedId, newest.observationsTimestamp, 1_000_000));
  demandStatus(answer, [200, 400]);
};

export const pageChecks: readonly Check[] = [
  {
    id: 'page.ascending',
    title: 'Reports are sorted by observationsTimestamp, oldest first',
    source: 'SDKs',
    sentence: 'SDKs read on from the last report of a page, so pages are in ascending order.',
    run: ascending,
  },
  {
    id: 'page.start',
    title: 'A page begins with the first report at or after startTimestamp',
    source: 'specification',
    sentence: 'an array of Report objects, sequential for the one stream, starting at startTimestamp.',
    run: startsAt,
  },
  {
    id: 'page.limit',
    title: 'limit bounds the number of reports',
    source: 'specification',
    sentence: 'limit on the page endpoint bounds the number of reports returned.',
    run: limited,
  },
  {
    id: 'page.no-limit',
    title: 'limit is optional',
    source: 'specification',
    sentence: 'limit: required no, integer, Number of reports to return',
    run: unlimited,
  },
  {
    id: 'page.continue',
    title: 'Reading on at the last observationsTimestamp + 1 gives each report once',
    source: 'SDKs',
    sentence: 'SDKs continue at the last observationsTimestamp + 1.',
    run: continued,
  },
  {
    id: 'page.same-report',
    title: 'A page has the reports that the timestamp operation returns',
    source: 'specification',
    sentence: 'Sequential reports of one stream from a start timestamp',
    run: sameAsAt,
  },
  {
    id: 'page.end',
    title: 'After the newest report: 200 with an empty list',
    source: 'SDKs',
    sentence: 'SDKs stop reading pages at an empty list.',
    run: future,
  },
  {
    id: 'page.huge-limit',
    title: 'A limit of a million is 400, or answered with fewer',
    source: 'specification',
    sentence: 'limit on the page endpoint bounds the number of reports returned.',
    run: hugeLimit,
  },
  ...argumentChecks('page', targets.page, [
    ['no-feed', 'A missing feedID is 400', (_, timestamp) => `/api/v1/reports/page?startTimestamp=${timestamp}`],
    ['no-start', 'A missing startTimestamp is 400', (feedId) => `/api/v1/reports/page?feedID=${feedId}`],
    ['malformed-start', 'A startTimestamp that is not a number is 400', (feedId) => targets.page(feedId, 'now')],
    [
      'malformed-limit',
      'A limit that is not a number is 400',
      (feedId, timestamp) => targets.page(feedId, timestamp, 'many'),
    ],
  ]),
];
