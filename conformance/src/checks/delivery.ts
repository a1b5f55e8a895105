// Whether live connections deliver everything: their frames are compared with what REST has afterwards.
import { timeResolutionOf } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { Frame, Watch } from '../live.ts';
import { type SeenReport, spanOf } from '../reports.ts';
import { isAlwaysOn, targets } from '../sample.ts';
import { demand, SkipError } from '../verdict.ts';
import { leftMs } from './websocket.ts';

/** Frames of a stream that are compared: a page has no more. */
const framesMax = 100;

/** The reports that REST has of a stream, from one second to another, oldest first. */
const readBetween = async ({ ask, pool }: CheckContext, feedId: string, from: number, to: number) => {
  const answer = await ask(targets.page(feedId, from, framesMax));
  const { reports } = Object(answer.json);
  const bytes = new Set((Array.isArray(reports) ? reports : []).map((report) => Object(report).fullReport));
  const seen = pool.all().filter(({ report }) => report.feedID === feedId && bytes.has(report.fullReport));
  return { answer, seen: seen.filter(({ report }) => report.observationsTimestamp <= to) };
};

/** The time of a report as frames of this version have it: the first has one report a second. */
const keyOf = (seen: SeenReport, version: 1 | 2): number =>
  version === 2 ? spanOf(seen).toMs : seen.report.observationsTimestamp * 1_000;

/** Fails if REST has a report between the first and the last frame of a stream that had no frame. */
export async function demandAllFrames(context: CheckContext, watch: Watch, version: 1 | 2): Promise<void> {
  let compared = 0;
  for (const { feedId } of await context.sample.reporting()) {
    const frames = watch.frames
      .filter((frame) => frame.feedId === feedId && Number.isFinite(frame.toMs))
      .slice(0, framesMax / 2);
    const [first, last] = [frames[0], frames.at(-1)];
    if (first === undefined || last === undefined || last.toMs <= first.toMs) continue;
    const sent = new Set(frames.map(({ toMs }) => toMs));
    const [from, to] = [Math.floor(first.toMs / 1_000), Math.floor(last.toMs / 1_000)];
    const { seen } = await readBetween(context, feedId, from, to);
    const due = seen.filter((one) => keyOf(one, version) > first.toMs && keyOf(one, version) < last.toMs);
    const lost = due.filter((one) => !sent.has(keyOf(one, version)));
    compared += due.length;
    demand(
      lost.length === 0,
      `a frame for each of ${due.length} reports of ${feedId} that REST has from ${from} to ${to}`,
      () => `none for ${lost.length}, such as the one observed at ${lost[0]?.report.observationsTimestamp}`,
      watch,
    );
  }
  if (compared === 0) throw new SkipError(`No stream had three frames within ${context.rules.liveMs / 1_000} s.`);
}

/** A live stream that gets a new report over REST gets a frame, too. */
const demandEachStream = async (context: CheckContext, watch: Watch): Promise<void> => {
  const { ask, sample, until, rules } = context;
  const latestOf = async (feedId: string): Promise<number> =>
    Number(Object(Object((await ask(targets.latest(feedId))).json).report).observationsTimestamp);
  const hasFrame = (feedId: string): boolean => watch.frames.some((frame: Frame) => frame.feedId === feedId);
  const silent = (await sample.reporting()).filter(
    ({ feedId, entry }) => !hasFrame(feedId) && isAlwaysOn(entry) !== false && timeResolutionOf(feedId) === 'seconds',
  );
  for (const { feedId } of silent) {
    const before = await latestOf(feedId);
    await until(() => hasFrame(feedId), Math.min(rules.slowAfterMs, rules.liveMs));
    const after = await latestOf(feedId);
    await until(() => hasFrame(feedId), rules.slowAfterMs);
    demand(
      hasFrame(feedId) || !(after > before),
      `a frame of ${feedId}, of which REST has a new report`,
      () => 'none',
      watch,
    );
  }
};

const complete =
  (version: 1 | 2): Check['run'] =>
  async (context) => {
    const watch = await context.watch(version);
    await context.until(() => watch.closed() !== undefined, leftMs(context, watch));
    await demandEachStream(context, watch);
    await demandAllFrames(context, watch, version);
  };

export const deliveryChecks: readonly Check[] = [
  {
    id: 'websocket.complete',
    title: 'Each report that REST has of the time of the connection had a frame',
    source: 'SDKs',
    sentence: 'A frame is sent for each new report.',
    run: complete(1),
  },
  {
    id: 'websocket.complete-v2',
    title: 'Each report that REST has of the time of the connection had a frame of version 2',
    source: 'SDKs',
    sentence: 'A frame is sent for each new report.',
    run: complete(2),
  },
];
