// Servers that are wrong in what they send: reports, pages, errors and frames. Each row is one fault and the checks that find it.
import type { AnswerChange, Fault, FrameChange, Reply, SentFrame, World } from './broken-server.fixture.ts';
import { argumentOf, on, paths, refuse, reply, restate, rewrite } from './faults-of-requests.fixture.ts';

type Report = { feedID: string; validFromTimestamp: number; observationsTimestamp: number; fullReport: string };

/** Changes the report of `latest`. */
const latestWith = (change: (report: Record<string, unknown>) => void): AnswerChange =>
  on(paths.latest, ({ report }) => change(report));
/** Changes the reports of a page, in place. */
const pageWith = (change: (reports: Report[], limit: number) => unknown): AnswerChange =>
  on(paths.page, ({ reports }, request) => {
    const changed = change(reports, Number(argumentOf(request, 'limit') ?? 10));
    return Array.isArray(changed) ? { reports: changed } : undefined;
  });
const swap = <T>(values: T[], i: number): void => {
  const [a, b] = [values[i], values[i + 1]];
  if (a !== undefined && b !== undefined) [values[i], values[i + 1]] = [b, a];
};
/** How long before the newest report a time is. */
const ageOf = ({ newestSecond }: World, second: string | number | null): number =>
  newestSecond === 0 ? 0 : newestSecond - Number(second);

const reportFaults: readonly Fault[] = [
  {
    name: 'latest lags behind pages',
    fails: ['latest.newest'],
    answer: on(paths.latest, async ({ report }, _, { ask }) => {
      const { feedID, observationsTimestamp } = report;
      // Reports come at ten times the speed, also on a machine that is seconds late.
      const earlier = await ask(`/api/v1/reports?feedID=${feedID}&timestamp=${observationsTimestamp - 100}`);
      return earlier.status === 200 ? JSON.parse(earlier.text) : undefined;
    }),
  },
  {
    name: 'latest is cached for good',
    fails: ['reports.advance'],
    options: ['--live-seconds', '1'],
    answer: (() => {
      const cached = new Map<string, string>();
      return (answer, { target }) => {
        if (!paths.latest.test(target) || answer.status !== 200) return;
        cached.set(target, cached.get(target) ?? answer.text);
        answer.text = cached.get(target) ?? '';
      };
    })(),
  },
  {
    name: 'timestamps are texts',
    fails: ['latest.shape'],
    answer: latestWith((report) => {
      report.observationsTimestamp = String(report.observationsTimestamp);
    }),
  },
  {
    name: 'fullReport has no 0x',
    fails: ['latest.shape'],
    answer: latestWith((report) => {
      report.fullReport = String(report.fullReport).slice(2);
    }),
  },
  {
    name: 'latest has no fullReport',
    fails: ['latest.shape'],
    answer: latestWith((report) => {
      report.fullReport = undefined;
    }),
  },
  {
    name: 'latest has another key beside report',
    fails: ['latest.shape'],
    answer: on(paths.latest, (body) => ({ ...body, next: null })),
  },
  {
    name: 'latest is of another stream',
    fails: ['latest.shape'],
    answer: latestWith((report) => {
      report.feedID = String(report.feedID).replace(/.$/, 'f');
    }),
  },
  {
    name: 'a window is not the signed one',
    fails: ['reports.same-as-signed'],
    answer: on(paths.page, ({ reports }) => {
      for (const report of reports) report.validFromTimestamp -= 1;
    }),
  },
  {
    name: 'a price is altered',
    fails: ['reports.signers'],
    answer: on(paths.page, ({ reports }) => {
      for (const report of reports) report.fullReport = report.fullReport.replace('de0b6b3a7640000', 'de0b6b3a7640001');
    }),
  },
  {
    name: 'the nearest report stands in for one that is missing',
    fails: ['at.future'],
    answer: async (answer, request, { ask }) => {
      if (!paths.at.test(request.target) || answer.status !== 404) return;
      const { status, text } = await ask(`/api/v1/reports/latest?feedID=${argumentOf(request, 'feedID')}`);
      Object.assign(answer, { status, text });
    },
  },
  {
    name: 'the time is ignored',
    fails: ['at.previous', 'at.history'],
    request: (request, { ask }) =>
      paths.at.test(request.target) && /timestamp=\d+$/.test(request.target)
        ? ask(`/api/v1/reports/latest?feedID=${argumentOf(request, 'feedID')}`)
        : undefined,
  },
  {
    name: 'a window has no end',
    fails: ['at.window'],
    answer: (answer, request) => {
      if (!paths.at.test(request.target) || answer.status !== 200) return;
      const { report } = JSON.parse(answer.text);
      if (String(report.observationsTimestamp) === argumentOf(request, 'timestamp')) Object.assign(answer, reply(404));
    },
  },
  {
    name: 'a window begins a second late',
    fails: ['at.window'],
    answer: (answer, request) => {
      if (!paths.at.test(request.target) || answer.status !== 200) return;
      const { report } = JSON.parse(answer.text);
      const isStart = String(report.validFromTimestamp) === argumentOf(request, 'timestamp');
      if (isStart && report.validFromTimestamp < report.observationsTimestamp) Object.assign(answer, reply(404));
    },
  },
  {
    name: 'reports older than two minutes are 404',
    fails: ['at.history'],
    request: refuse(
      404,
      (request, world) => paths.at.test(request.target) && ageOf(world, argumentOf(request, 'timestamp')) > 120,
    ),
  },
  {
    name: 'bulk has no reports older than ten minutes',
    fails: ['bulk.history'],
    request: (request, world) =>
      paths.bulk.test(request.target) && ageOf(world, argumentOf(request, 'timestamp')) > 600
        ? reply(206, { reports: [] })
        : undefined,
  },
  {
    name: 'bulk has the newest reports whatever the time',
    fails: ['bulk.history', 'bulk.empty'],
    request: (request, world) =>
      paths.bulk.test(request.target) && argumentOf(request, 'timestamp') !== null
        ? rewrite(request, world, (query) => query.set('timestamp', String(world.newestSecond)))
        : undefined,
  },
  {
    name: 'a missing report is not told by the status',
    fails: ['bulk.empty', 'bulk.partial'],
    answer: restate(200, ({ status }) => status === 206),
  },
  {
    name: 'bulk is always 206',
    fails: ['bulk.complete'],
    answer: restate(206, ({ status }, { target }) => status === 200 && paths.bulk.test(target)),
  },
  {
    name: 'bulk leaves out the last stream',
    fails: ['bulk.complete'],
    answer: on(paths.bulk, ({ reports }) => ({ reports: reports.slice(0, -1) })),
  },
  {
    name: 'bulk has one report twice',
    fails: ['bulk.complete'],
    answer: on(paths.bulk, ({ reports }) => ({
      reports: reports.flatMap((one: Report, i: number) => (i === 0 ? [one, one] : [one])),
    })),
  },
  {
    name: 'bulk leaves out streams that do not exist',
    fails: ['bulk.one-unknown'],
    request: (request, world) =>
      paths.bulk.test(request.target) && /,0x0003dead/.test(request.target)
        ? rewrite(request, world, (query) => query.set('feedIDs', `${query.get('feedIDs')}`.split(',')[0] ?? ''))
        : undefined,
  },
  {
    name: 'bulk answers any number of streams',
    fails: ['bulk.too-many'],
    request: ({ target }) =>
      target.length > 9_000 && paths.bulk.test(target) ? reply(206, { reports: [] }) : undefined,
  },
];

const pageFaults: readonly Fault[] = [
  { name: 'pages are newest first', fails: ['page.ascending'], answer: pageWith((reports) => reports.reverse()) },
  {
    name: 'pages begin after their start',
    fails: ['page.start', 'page.history'],
    answer: pageWith((reports) => reports.slice(1)),
  },
  {
    name: 'limit is ignored',
    fails: ['page.limit'],
    request: (request, world) =>
      paths.page.test(request.target) && Number(argumentOf(request, 'limit')) < 10
        ? rewrite(request, world, (query) => query.set('limit', '10'))
        : undefined,
  },
  {
    name: 'pages have one report more than asked for',
    fails: ['page.limit'],
    request: (request, world) =>
      paths.page.test(request.target) && Number(argumentOf(request, 'limit')) < 1_000
        ? rewrite(request, world, (query) => query.set('limit', String(Number(query.get('limit') ?? 10) + 1)))
        : undefined,
  },
  {
    name: 'a page without limit is empty',
    fails: ['page.no-limit'],
    answer: on(paths.page, (_, request) => (argumentOf(request, 'limit') === null ? { reports: [] } : undefined)),
  },
  {
    name: 'a page after the newest report is 404',
    fails: ['page.end'],
    answer: restate(404, ({ text }, { target }) => paths.page.test(target) && text === '{"reports":[]}'),
  },
  {
    name: 'a huge limit is 500',
    fails: ['page.huge-limit'],
    request: refuse(500, ({ target }) => target.includes('limit=1000000')),
  },
  {
    name: 'reports late in a page are swapped',
    fails: ['page.whole'],
    answer: pageWith((reports) => swap(reports, 300)),
  },
  {
    name: 'reports are swapped after the 40th',
    fails: ['page.whole', 'page.same-start'],
    answer: pageWith((reports) => swap(reports, 40)),
  },
  {
    name: 'a report late in a page is repeated',
    fails: ['page.whole'],
    answer: pageWith((reports) => (reports.length > 900 ? reports.toSpliced(901, 0, reports[900] as Report) : reports)),
  },
  {
    name: 'a report late in a page replaces the next one',
    fails: ['page.whole'],
    answer: pageWith((reports) => (reports.length > 700 ? reports.with(700, reports[699] as Report) : reports)),
  },
  {
    name: 'a report late in a page is left out',
    fails: ['page.whole'],
    answer: pageWith((reports) => reports.toSpliced(700, 1)),
  },
  {
    name: 'the bytes of two reports of a page are swapped',
    fails: ['reports.same-as-signed'],
    answer: pageWith((reports) => {
      const [a, b] = [reports[1], reports[2]];
      if (a !== undefined && b !== undefined) [a.fullReport, b.fullReport] = [b.fullReport, a.fullReport];
    }),
  },
  {
    name: 'pages of more than five minutes ago are empty',
    fails: ['page.history'],
    request: (request, world) =>
      paths.page.test(request.target) && ageOf(world, argumentOf(request, 'startTimestamp')) > 300
        ? reply(200, { reports: [] })
        : undefined,
  },
  {
    name: 'pages of the past begin too late',
    fails: ['page.history'],
    request: (request, world) =>
      paths.page.test(request.target) && ageOf(world, argumentOf(request, 'startTimestamp')) > 300
        ? rewrite(request, world, (query) => query.set('startTimestamp', String(world.newestSecond - 30)))
        : undefined,
  },
  {
    name: 'pages lack the newest reports',
    fails: ['page.history'],
    answer: on(paths.page, ({ reports }, _, world) => ({
      reports: reports.filter(({ observationsTimestamp }: Report) => ageOf(world, observationsTimestamp) > 20),
    })),
  },
];

const isEvery = (answer: Reply, count: number, nth: number): boolean => answer.status === 200 && count % nth === 0;

const answerFaults: readonly Fault[] = [
  {
    name: 'an error is a web page',
    fails: ['errors.shape'],
    answer: (answer) => {
      if (answer.status >= 400) answer.text = '<html></html>';
    },
  },
  {
    name: 'a wrong request has another status the second time',
    fails: ['errors.repeatable'],
    answer: restate(404, ({ status }, { target }, { count }) => status === 400 && count(target) % 2 === 0),
  },
  {
    name: 'one request of five is 500',
    fails: ['service.server-errors'],
    answer: restate(500, (answer, _, { count }) => isEvery(answer, count('all'), 5)),
  },
  {
    name: 'one request of five is redirected',
    fails: ['service.redirects'],
    answer: restate(307, (answer, _, { count }) => isEvery(answer, count('all'), 5)),
  },
  {
    name: 'JSON is sent as text',
    fails: ['service.json'],
    answer: ({ headers }) => {
      headers['content-type'] = 'text/plain';
    },
  },
  {
    name: 'reports are 203',
    fails: ['service.statuses'],
    answer: restate(203, (answer, { target }) => answer.status === 200 && paths.reports.test(target)),
  },
  {
    name: 'origins are listed without braces',
    fails: ['origins.header'],
    answer: ({ headers }) => {
      if (headers['x-cll-available-origins'] !== undefined) headers['x-cll-available-origins'] = '001,002';
    },
  },
];

/** Changes the report of each frame. */
const frameWith =
  (change: (report: Record<string, unknown>, target: string) => void): FrameChange =>
  ({ text, isBinary }, target) => {
    const message = JSON.parse(text);
    change(message.report, target);
    return [{ text: JSON.stringify(message), isBinary }];
  };
const drop =
  (isDropped: (n: number, frame: SentFrame) => boolean, only = /./): FrameChange =>
  (frame, target, count) =>
    only.test(target) && isDropped(count('frames'), frame) ? [] : [frame];
const both = ['websocket.complete', 'websocket.complete-v2'];
const live = ['--live-seconds', '3', '--slow-after', '1000'];

const frameFaults: readonly Fault[] = [
  { name: 'a tenth of the frames is dropped', fails: both, options: live, frame: drop((n) => n % 10 === 5) },
  { name: 'half of the frames are dropped', fails: both, options: live, frame: drop((n) => n % 2 === 1) },
  {
    name: 'a tenth of the frames of version 2 is dropped',
    fails: ['websocket.complete-v2'],
    options: live,
    frame: drop((n) => n % 10 === 5, /v2/),
  },
  {
    name: 'frames of one stream are dropped',
    fails: both,
    options: ['--live-seconds', '2', '--slow-after', '1000'],
    frame: drop((_, { text }) => text.includes('"feedID":"0x0003b2') || /"feedID":"0x\w*b2"/.test(text)),
  },
  {
    name: 'frames are text',
    fails: ['websocket.binary'],
    frame: ({ text }) => [{ text, isBinary: false }],
  },
  {
    name: 'frames come with another message',
    fails: ['websocket.frame'],
    frame: (frame) => [{ text: '{"heartbeat":1}', isBinary: true }, frame],
  },
  {
    name: 'frames have times as texts',
    fails: ['websocket.frame'],
    frame: frameWith((report) => {
      report.observationsTimestamp = String(report.observationsTimestamp);
    }),
  },
  {
    name: 'frames of version 2 have seconds',
    fails: ['websocket.frame-v2'],
    frame: frameWith((report, target) => {
      if (target.includes('v2')) report.observationsTimestampMs = undefined;
    }),
  },
  {
    name: 'frames of version 2 are a second late in their time',
    fails: ['websocket.same-as-v1'],
    frame: frameWith((report) => {
      if (report.observationsTimestampMs !== undefined)
        report.observationsTimestampMs = Number(report.observationsTimestampMs) + 1_000;
    }),
  },
  {
    name: 'frames have altered bytes',
    fails: ['websocket.same-report'],
    frame: frameWith((report) => {
      report.fullReport = String(report.fullReport).replace(/..$/, 'ff');
    }),
  },
  {
    name: 'frames of other streams are sent',
    fails: ['websocket.subscribed'],
    frame: frameWith((report) => {
      report.feedID = String(report.feedID).replace(/.$/, 'f');
    }),
  },
  { name: 'frames are sent twice', fails: ['websocket.order', 'websocket.order-v2'], frame: (frame) => [frame, frame] },
  {
    name: 'pings are not answered',
    fails: ['websocket.pong'],
    options: ['--slow-after', '500'],
    noPong: true,
  },
  {
    name: 'the server closes connections after a second',
    fails: ['websocket.stays-open'],
    options: live,
    socket: (client) => void setTimeout(() => client.close(1_011), 1_000),
  },
  {
    name: 'one origin drops frames',
    fails: ['origins.complete'],
    options: live,
    frame: (() => {
      let opened = 0;
      const connections = new WeakMap<object, number>();
      return (frame, _, count) => {
        if (!connections.has(count)) connections.set(count, opened++);
        return connections.get(count) === 3 && count('frames') % 4 === 0 ? [] : [frame];
      };
    })(),
  },
];

export const answerFaultTable: readonly Fault[] = [...reportFaults, ...pageFaults, ...answerFaults, ...frameFaults];
