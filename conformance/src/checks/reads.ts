// The operations that return one report: the latest, and the one at a timestamp.
import type { ReportJson } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { ReceivedAnswer } from '../exchange.ts';
import { reportsOf, shapeProblem } from '../reports.ts';
import { type ReportingStream, targets } from '../sample.ts';
import { demand, demandStatus, excerpt } from '../verdict.ts';

/** The report of an answer with exactly one key, `report`. */
const requireReport = (answer: ReceivedAnswer, feedId: string) => {
  demandStatus(answer, [200]);
  const keys = Object.keys(Object(answer.json));
  demand(keys.join() === 'report', 'an object with one key, report', () => excerpt(answer.text), answer);
  const { report } = Object(answer.json);
  const problem = shapeProblem(report);
  demand(
    problem === undefined,
    'a report with feedID, validFromTimestamp, observationsTimestamp and fullReport',
    () => String(problem),
    answer,
  );
  demand(report.feedID === feedId, `feedID ${feedId}`, () => report.feedID, answer);
  return report;
};

/** The reports of an answer with exactly one key, `reports`. */
export function requireReports(answer: ReceivedAnswer): readonly ReportJson[] {
  const keys = Object.keys(Object(answer.json));
  demand(keys.join() === 'reports', 'an object with one key, reports', () => excerpt(answer.text), answer);
  const { reports } = Object(answer.json);
  demand(Array.isArray(reports), 'a list of reports', () => excerpt(answer.text), answer);
  for (const report of reports) {
    const problem = shapeProblem(report);
    demand(problem === undefined, 'reports with the four fields', () => String(problem), answer);
  }
  return reportsOf(answer.json);
}

const readAt = async ({ ask }: CheckContext, feedId: string, timestamp: number) => {
  const answer = await ask(targets.at(feedId, timestamp));
  return { answer, report: requireReport(answer, feedId) };
};

/** Streams of each time resolution, at most two. */
const eachKind = async ({ sample }: CheckContext) => {
  const streams = await sample.reporting();
  const other = streams.find(({ feedId }) => feedId[2] !== streams[0].feedId[2]);
  return other === undefined ? streams.slice(0, 2) : [streams[0], other];
};

const latestShape: Check['run'] = async (context) => {
  const unread = (await context.sample.streams()).filter(({ newest }) => newest === undefined);
  for (const { feedId } of unread.slice(0, 2)) {
    const answer = await context.ask(targets.latest(feedId));
    if (answer.status !== 404) requireReport(answer, feedId); // without a report, or with one that is malformed
  }
  for (const { feedId } of await eachKind(context)) requireReport(await context.ask(targets.latest(feedId)), feedId);
};

/** A page is read first: a report that comes into being in between can only make the latest newer. */
const latestNewest: Check['run'] = async (context) => {
  for (const { feedId, newest } of await eachKind(context)) {
    const page = await context.ask(targets.page(feedId, newest.observationsTimestamp, 10));
    const { reports } = Object(page.json);
    const seen = (Array.isArray(reports) ? reports : []).map((one) => Object(one).observationsTimestamp);
    const answer = await context.ask(targets.latest(feedId));
    const { observationsTimestamp } = requireReport(answer, feedId);
    const newer = seen.filter((second) => Number.isFinite(second));
    const before = newer.reduce((last, second) => Math.max(last, second), newest.observationsTimestamp);
    demand(
      observationsTimestamp >= before,
      `observationsTimestamp of at least ${before}, which was read before`,
      () => String(observationsTimestamp),
      answer,
    );
  }
};

const widthOf = ({ newest }: ReportingStream): number => newest.observationsTimestamp - newest.validFromTimestamp;

/** Also the stream with the widest window: both ends of most are one second. */
const atWindow: Check['run'] = async (context) => {
  const [widest] = (await context.sample.reporting()).toSorted((a, b) => widthOf(b) - widthOf(a));
  for (const { feedId, newest } of new Set([...(await eachKind(context)), ...(widest === undefined ? [] : [widest])])) {
    const { validFromTimestamp: from, observationsTimestamp: to } = newest;
    for (const timestamp of new Set([to, from, Math.floor((from + to) / 2)])) {
      const { answer, report } = await readAt(context, feedId, timestamp);
      demand(
        report.validFromTimestamp <= timestamp && timestamp <= report.observationsTimestamp,
        `a report that is valid at ${timestamp}`,
        () => `one that is valid from ${report.validFromTimestamp} to ${report.observationsTimestamp}`,
        answer,
      );
    }
  }
};

const atStable: Check['run'] = async (context) => {
  const [{ feedId, newest }] = await context.sample.reporting();
  const first = await readAt(context, feedId, newest.observationsTimestamp);
  const second = await readAt(context, feedId, newest.observationsTimestamp);
  demand(
    first.answer.text === second.answer.text,
    'the same report twice',
    () => 'two different reports',
    second.answer,
  );
};

const atPrevious: Check['run'] = async (context) => {
  const [{ feedId, newest }] = await context.sample.reporting();
  const timestamp = newest.validFromTimestamp - 1;
  const answer = await context.ask(targets.at(feedId, timestamp));
  if (answer.status !== 200) return demandStatus(answer, [404, 400], '200, or 404 if there is a gap');
  const report = requireReport(answer, feedId);
  demand(
    report.validFromTimestamp <= timestamp && timestamp <= report.observationsTimestamp,
    `a report that is valid at ${timestamp}`,
    () => `one that is valid from ${report.validFromTimestamp} to ${report.observationsTimestamp}`,
    answer,
  );
};

const atFuture: Check['run'] = async ({ ask, sample }) => {
  const [{ feedId, newest }] = await sample.reporting();
  const answer = await ask(targets.at(feedId, newest.observationsTimestamp + 86_400));
  demandStatus(answer, [400, 404], '404 (or 400), never another report');
};

const is400 =
  (target: (feedId: string, timestamp: number) => string): Check['run'] =>
  async ({ ask, sample }) => {
    const [{ feedId, newest }] = await sample.reporting();
    demandStatus(await ask(target(feedId, newest.observationsTimestamp)), [400]);
  };

/** A well-formed feed ID that no deployment has. */
export const unknownFeedId = `0x0003${'dead'.repeat(15)}`;

const argument = 'A query argument is missing or malformed';
const noStream = 'A request for a stream the caller has no permission for, or that does not exist, fails with 401.';
const allRoutes =
  'Every route requires authentication, except discovery, which may be called anonymously to list public streams.';

const is401 =
  (target: (timestamp: number) => string): Check['run'] =>
  async ({ ask, sample }) => {
    const [{ newest }] = await sample.reporting();
    demandStatus(await ask(target(newest.observationsTimestamp)), [401]);
  };

const needsAuthentication =
  (target: (feedId: string, timestamp: number) => string): Check['run'] =>
  async ({ ask, sample }) => {
    const [{ feedId, newest }] = await sample.reporting();
    demandStatus(await ask(target(feedId, newest.observationsTimestamp), { signed: false }), [400, 401]);
  };

/** The rows that every operation with a report has: authentication, permission, and arguments that are 400. */
export const argumentChecks = (
  group: string,
  target: (feedId: string, timestamp: number) => string,
  bad: readonly (readonly [name: string, title: string, target: (feedId: string, timestamp: number) => string])[],
): readonly Check[] => [
  {
    id: `${group}.anonymous`,
    title: 'It requires authentication',
    source: 'specification',
    sentence: allRoutes,
    run: needsAuthentication(target),
  },
  {
    id: `${group}.unknown-stream`,
    title: 'A stream that does not exist is 401',
    source: 'specification',
    sentence: noStream,
    run: is401((timestamp) => target(unknownFeedId, timestamp)),
  },
  ...bad.map(
    ([name, title, malformed]): Check => ({
      id: `${group}.${name}`,
      title,
      source: 'specification',
      sentence: argument,
      run: is400(malformed),
    }),
  ),
];

export const latestChecks: readonly Check[] = [
  {
    id: 'latest.shape',
    title: 'The body is {"report": {…}} with the four fields, timestamps as integers',
    source: 'specification',
    sentence: 'Response body: object with one key report, whose value is a Report, the one with the latest timestamp.',
    run: latestShape,
  },
  {
    id: 'latest.newest',
    title: 'It is the newest report, and never goes back',
    source: 'specification',
    sentence: 'whose value is a Report, the one with the latest timestamp.',
    run: latestNewest,
  },
  ...argumentChecks('latest', targets.latest, [
    ['no-feed', 'A missing feedID is 400', () => '/api/v1/reports/latest'],
    ['malformed-feed', 'A malformed feedID is 400', () => targets.latest('0x12')],
  ]),
];

export const atChecks: readonly Check[] = [
  {
    id: 'at.window',
    title: 'The report is valid at the timestamp: both ends of its window, and between',
    source: 'specification',
    sentence: "Together validFromTimestamp and observationsTimestamp define a span of time for the report's price.",
    run: atWindow,
  },
  {
    id: 'at.stable',
    title: 'The same timestamp gives the same report',
    source: 'specification',
    sentence: 'Moment for which the report is returned',
    run: atStable,
  },
  {
    id: 'at.previous',
    title: 'The second before a window has another report, or none',
    source: 'specification',
    sentence:
      'Its price applies to a span of time, bounded by validFromTimestamp and observationsTimestamp, not to a single instant.',
    run: atPrevious,
  },
  {
    id: 'at.future',
    title: 'A time without a report gives an error, never another report',
    source: 'SDKs',
    sentence: 'A 200 has a report that is valid at the timestamp; SDKs do not expect it to be missing.',
    run: atFuture,
  },
  ...argumentChecks('at', targets.at, [
    ['no-feed', 'A missing feedID is 400', (_, timestamp) => `/api/v1/reports?timestamp=${timestamp}`],
    ['no-timestamp', 'A missing timestamp is 400', (feedId) => `/api/v1/reports?feedID=${feedId}`],
    ['malformed-feed', 'A malformed feedID is 400', (_, timestamp) => targets.at('ETH', timestamp)],
    ['malformed-timestamp', 'A timestamp that is not a number is 400', (feedId) => targets.at(feedId, 'now')],
    ['negative-timestamp', 'A negative timestamp is 400', (feedId) => targets.at(feedId, -1)],
  ]),
];
