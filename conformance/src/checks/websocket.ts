// Live delivery over WebSockets, versions 1 and 2: handshake, frames, order, delay, pings, closing.
import { authHeaders, timeResolutionOf } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext, FreshReport } from '../check-context.ts';
import type { Frame, Watch } from '../live.ts';
import { frameReport } from '../live.ts';
import { millisecondKeys, reportsOf, shapeProblem } from '../reports.ts';
import type { AskChanges } from '../requester.ts';
import { targets } from '../sample.ts';
import { demand, MismatchError, SkipError } from '../verdict.ts';
import { unknownFeedId } from './reads.ts';

/** Frames of one stream that make an order. */
const framesWanted = 4;

const countOf = ({ frames }: Watch, feedId: string): number => frames.filter((frame) => frame.feedId === feedId).length;

/** A report that is new to REST, which live connections must deliver too. */
export async function requireNewReport({ newReport, rules }: CheckContext): Promise<FreshReport> {
  const found = await newReport();
  if (found === undefined) throw new SkipError(`No sampled stream had a new report within ${rules.liveMs / 1_000} s.`);
  return found;
}

/** What is left of the time that a connection is watched; all checks share it, so that a silent server does not cost each of them all of it. */
export const leftMs = ({ rules }: CheckContext, watch: Watch): number =>
  Math.max(0, (watch.openedMs() ?? 0) + rules.liveMs - performance.now());

/** Waits for frames of any one stream; fails if there are none although REST has a new report. */
const requireFrames = async (context: CheckContext, version: 1 | 2, wanted = framesWanted): Promise<Watch> => {
  const watch = await context.watch(version);
  const hasEnough = () => watch.frames.some(({ feedId }) => countOf(watch, feedId) >= wanted);
  await context.until(() => hasEnough() || watch.closed() !== undefined, leftMs(context, watch));
  if (watch.frames.length > 0) return watch;
  const { report } = await requireNewReport(context);
  const actual = `none, although REST has a new report, observed at ${report.observationsTimestamp}`;
  throw new MismatchError('frames', actual, watch.request);
};

const opens =
  (version: 1 | 2): Check['run'] =>
  async ({ watch }) =>
    void (await watch(version));

const frameShape =
  (version: 1 | 2): Check['run'] =>
  async (context) => {
    const watch = await requireFrames(context, version, 1);
    for (const frame of watch.frames) {
      demand(frame.keys.join() === 'report', 'a message with one key, report', () => frame.excerpt, watch);
      const problem = shapeProblem(frame.report, version === 2 ? millisecondKeys : undefined);
      demand(problem === undefined, 'the four fields of a report', () => String(problem), watch);
    }
  };

const binary: Check['run'] = async (context) => {
  for (const version of [1, 2] as const) {
    const watch = await requireFrames(context, version, 1);
    const text = watch.frames.find(({ isBinary }) => !isBinary);
    demand(text === undefined, 'binary frames', () => `a text frame: ${text?.excerpt}`, watch);
  }
};

const subscribed: Check['run'] = async (context) => {
  const ids = (await context.sample.streams()).map(({ feedId }) => feedId);
  const watch = await requireFrames(context, 1, 1);
  const foreign = watch.frames.find(({ feedId }) => !ids.includes(feedId));
  demand(foreign === undefined, 'reports of the requested streams', () => `one of ${foreign?.feedId}`, watch);
};

/** Every frame is later than the one before it of the same stream. */
const inOrder =
  (version: 1 | 2): Check['run'] =>
  async (context) => {
    const watch = await requireFrames(context, version);
    const last = new Map<string, Frame>();
    for (const frame of watch.frames) {
      const before = last.get(frame.feedId);
      const isLater = before === undefined || frame.toMs > before.toMs;
      const actual = () =>
        `${frame.toMs} ms ${frame.toMs === before?.toMs ? 'twice' : `after ${before?.toMs} ms`} for ${frame.feedId}`;
      demand(isLater, 'strictly increasing observations within a stream', actual, watch);
      last.set(frame.feedId, frame);
    }
    if (last.size === watch.frames.length)
      throw new SkipError(`No stream had two frames within ${context.rules.liveMs / 1_000} s.`);
  };

/** The first frame that is at least as new as a report that REST has. */
const frameFor = ({ frames }: Watch, feedId: string, toMs: number): Frame | undefined =>
  frames.find((frame) => frame.feedId === feedId && frame.toMs >= toMs);

const prompt: Check['run'] = async (context) => {
  await context.watch(1);
  const { feedId, report, atMs } = await requireNewReport(context);
  const { slowAfterMs } = context.rules;
  const watch = await context.watch(1);
  const toMs = report.observationsTimestamp * 1_000;
  await context.until(() => frameFor(watch, feedId, toMs) !== undefined, slowAfterMs);
  const frame = frameFor(watch, feedId, toMs);
  const lateMs = Math.round((frame?.atMs ?? performance.now()) - atMs);
  demand(
    frame !== undefined && lateMs <= slowAfterMs,
    `a frame at most ${slowAfterMs} ms after REST has the report`,
    () => (frame === undefined ? `none after ${lateMs} ms` : `${lateMs} ms after`),
    watch,
  );
};

const sameAsRest: Check['run'] = async (context) => {
  const watch = await requireFrames(context, 1, 1);
  const frames = watch.frames.filter(
    ({ feedId, report }) => timeResolutionOf(feedId) === 'seconds' && shapeProblem(report) === undefined,
  );
  context.pool.add(frames.slice(0, 200).map(frameReport), watch.request);
  if (frames.length === 0) throw new SkipError('There was no frame of a stream in seconds.');
  for (const frame of [frames[0], frames.at(-1)].flatMap((one) => one ?? [])) {
    const { feedID, observationsTimestamp, fullReport } = frameReport(frame);
    const answer = await context.ask(targets.at(feedID, observationsTimestamp));
    const [report] = reportsOf(answer.json);
    demand(
      report?.fullReport === fullReport,
      'the report of the frame',
      () => (report === undefined ? `status ${answer.status}` : 'another report'),
      answer,
    );
  }
};

const sameAsFirst: Check['run'] = async (context) => {
  const watch = await requireFrames(context, 2, 1);
  const first = await requireFrames(context, 1, 1);
  const bytes = ({ report }: Frame): unknown => Object(report).fullReport;
  const both = () => watch.frames.filter((frame) => first.frames.some((one) => bytes(one) === bytes(frame)));
  await context.until(() => both().length > 0, context.rules.slowAfterMs);
  if (both().length === 0) throw new SkipError('No report arrived on both versions.');
  for (const frame of both()) {
    const seconds = first.frames.find((one) => bytes(one) === bytes(frame));
    demand(
      Math.floor(frame.toMs / 1_000) * 1_000 === seconds?.toMs,
      `observationsTimestampMs within second ${Number(seconds?.toMs) / 1_000}`,
      () => String(frame.toMs),
      watch,
    );
  }
};

const answersPing: Check['run'] = async (context) => {
  const watch = await context.watch(1);
  const before = watch.pongs.length;
  watch.ping();
  await context.until(() => watch.pongs.length > before, context.rules.slowAfterMs);
  demand(watch.pongs.length > before, `a pong within ${context.rules.slowAfterMs} ms`, () => 'none', watch);
};

/** Servers ping every 10 s, with some time to spare. */
const pingMaxMs = 12_000;

/** The connection is silent on our side but for one ping. */
const pings: Check['run'] = async (context) => {
  const watch = await context.watch(2);
  await context.until(() => watch.pings.length > 0, leftMs(context, watch));
  const openMs = Math.round(performance.now() - (watch.openedMs() ?? 0));
  if (watch.pings.length === 0 && openMs < pingMaxMs)
    throw new SkipError(`The connection was watched for less than ${pingMaxMs / 1_000} s. Raise --live-seconds.`);
  demand(watch.pings.length > 0, `a ping within ${context.rules.liveMs} ms`, () => `none in ${openMs} ms`, watch);
};

const staysOpen: Check['run'] = async (context) => {
  for (const version of [1, 2] as const) {
    const watch = await context.watch(version);
    await context.until(() => watch.closed() !== undefined, leftMs(context, watch));
    const closed = watch.closed();
    demand(
      closed === undefined,
      'a connection that stays open',
      () => `closed with ${closed?.code} ${closed?.reason}`.trim(),
      watch,
    );
  }
};

const closes: Check['run'] = async (context) => {
  const [{ feedId }] = await context.sample.reporting();
  await context.watch(1);
  const watch = await context.handshake(`/api/v1/ws?feedIDs=${feedId}`);
  const opened = await watch.opened;
  demand(opened.ok, '101 Switching Protocols', () => (opened.ok ? '' : opened.problem), watch);
  watch.close();
  await context.until(() => watch.closed() !== undefined, context.rules.slowAfterMs);
  const code = watch.closed()?.code;
  demand(
    code === 1000 || code === 1005,
    'close frame 1000 in return',
    () => (code === undefined ? 'none' : String(code)),
    watch,
  );
};

/** A handshake that is answered with a status instead. */
const refused =
  (
    statuses: readonly number[],
    target: (feedId: string) => string,
    changes: AskChanges | ((context: CheckContext) => AskChanges) = {},
  ): Check['run'] =>
  async (context) => {
    const [{ feedId }] = await context.sample.reporting();
    await context.watch(1); // without WebSockets there is nothing to refuse
    const watch = await context.handshake(target(feedId), typeof changes === 'function' ? changes(context) : changes);
    const opened = await watch.opened;
    watch.end();
    const status = opened.ok ? 101 : opened.refusal?.status;
    demand(
      status !== undefined && statuses.includes(status),
      statuses.join(' or '),
      () => (opened.ok ? '101' : opened.problem),
      watch,
    );
  };

const wsTarget = (feedId: string): string => `/api/v1/ws?feedIDs=${feedId}`;
const handshake =
  'SDKs open a WebSocket at /api/v1/ws with the three headers of a signed GET; a handshake fails with the statuses of REST.';

export const websocketChecks: readonly Check[] = [
  {
    id: 'websocket.open',
    title: 'A signed handshake for several streams opens /api/v1/ws',
    source: 'SDKs',
    sentence: handshake,
    run: opens(1),
  },
  {
    id: 'websocket.open-v2',
    title: 'A signed handshake for several streams opens /api/v2/ws',
    source: 'SDKs',
    sentence: 'The second version of one SDK streams from /api/v2/ws.',
    run: opens(2),
  },
  {
    id: 'websocket.unsigned',
    title: 'A handshake without the headers is 400 or 401',
    source: 'SDKs',
    sentence: handshake,
    run: refused([400, 401], wsTarget, { signed: false }),
  },
  {
    id: 'websocket.missing-timestamp',
    title: 'A handshake without the timestamp is 400',
    source: 'SDKs',
    sentence: handshake,
    run: refused([400], wsTarget, { headers: { [authHeaders.timestamp]: undefined } }),
  },
  {
    id: 'websocket.wrong-secret',
    title: 'A handshake signed with another secret is 401',
    source: 'SDKs',
    sentence: handshake,
    run: refused([401], wsTarget, { signed: { withOtherSecret: true } }),
  },
  {
    id: 'websocket.stale',
    title: 'A handshake with a timestamp that is too old is 400 or 401',
    source: 'SDKs',
    sentence: handshake,
    run: refused([400, 401], wsTarget, ({ rules }) => ({ signed: { skewMs: -rules.skewMaxMs - 3_000 } })),
  },
  {
    id: 'websocket.unknown-stream',
    title: 'A stream that does not exist is 401',
    source: 'SDKs',
    sentence: handshake,
    run: refused([401], (feedId) => wsTarget(`${feedId},${unknownFeedId}`)),
  },
  {
    id: 'websocket.no-feeds',
    title: 'Missing feedIDs are 400',
    source: 'SDKs',
    sentence: handshake,
    run: refused([400], () => '/api/v1/ws'),
  },
  {
    id: 'websocket.prompt',
    title: 'A report arrives about when REST has it',
    source: 'SDKs',
    sentence: 'A frame is sent for each new report.',
    run: prompt,
  },
  {
    id: 'websocket.frame',
    title: 'A frame is {"report": {…}} with the four fields, and nothing else is sent',
    source: 'SDKs',
    sentence: 'One SDK crashes on a message without report.',
    run: frameShape(1),
  },
  {
    id: 'websocket.frame-v2',
    title: 'A frame of version 2 has validFromTimestampMs and observationsTimestampMs',
    source: 'SDKs',
    sentence: 'Frames of /api/v2/ws have their times in milliseconds.',
    run: frameShape(2),
  },
  {
    id: 'websocket.binary',
    title: 'Frames are binary',
    source: 'SDKs',
    sentence: 'One SDK ignores text frames.',
    run: binary,
  },
  {
    id: 'websocket.subscribed',
    title: 'Only the requested streams are sent',
    source: 'SDKs',
    sentence: 'feedIDs of the handshake are the streams of the connection.',
    run: subscribed,
  },
  {
    id: 'websocket.order',
    title: 'Observations strictly increase within a stream',
    source: 'SDKs',
    sentence: 'SDKs drop a report that is not newer than the last of its stream.',
    run: inOrder(1),
  },
  {
    id: 'websocket.order-v2',
    title: 'Observations strictly increase within a stream of version 2',
    source: 'SDKs',
    sentence: 'SDKs drop a report that is not newer than the last of its stream.',
    run: inOrder(2),
  },
  {
    id: 'websocket.same-report',
    title: 'A frame has the report that REST returns',
    source: 'specification',
    sentence: 'Moment for which the report is returned',
    run: sameAsRest,
  },
  {
    id: 'websocket.same-as-v1',
    title: 'Both versions have the same window for a report',
    source: 'SDKs',
    sentence: 'Frames of /api/v2/ws have their times in milliseconds.',
    run: sameAsFirst,
  },
  {
    id: 'websocket.pong',
    title: 'A ping is answered',
    source: 'SDKs',
    sentence: 'SDKs ping, and reconnect without an answer.',
    run: answersPing,
  },
  {
    id: 'websocket.ping',
    title: 'The server pings a silent client',
    source: 'SDKs',
    sentence: 'One SDK never pings, and relies on the server to find dead connections.',
    run: pings,
  },
  {
    id: 'websocket.stays-open',
    title: 'The server does not close a connection in use',
    source: 'SDKs',
    sentence: 'SDKs count each reconnect as a fault.',
    run: staysOpen,
  },
  {
    id: 'websocket.close',
    title: 'A close frame is answered',
    source: 'SDKs',
    sentence: 'SDKs close with 1000 and wait for the answer.',
    run: closes,
  },
];
