// An event stream: everything appended after the last event that the client saw, then every report as it arrives, in append order and each
// once (D67). Late reports are included.
import type { ServerResponse } from 'node:http';
import type { FeedId } from '@sealpost/protocol';
import type { LongWork } from '../access/long-work.ts';
import { watchStalls } from '../connections/connection-limits.ts';
import { renderedLengthMax } from '../store/format/rendered-report.ts';
import { type Appended, CorruptRecordError, type ReportStore } from '../store/store.ts';
import type { Ending, InterceptedTarget, LiveConnection, LiveInterceptor, Tally } from './connections.ts';
import type { EventIds, ResumePoint } from './event-id.ts';
import type { Burst, LiveDelivery } from './live-delivery.ts';
import { writeEvent } from './message.ts';
import type { SocketRules } from './sockets.ts';

/** Reports that a stream may be behind and still be resumed; further back the client reads pages, which costs the server less. */
const resumeReportsMax = 100_000;
/** Reports that a slice of a catch-up writes at most: some 100 KB. */
const catchUpBatch = 64;
/** Bytes of an event at most, beyond its report. */
const eventBytesMax = 200;
/** How long a catch-up waits when the store is behind what live readers got. */
const behindMs = 50;
const comment = Buffer.from(':\n\n');

export type EventStreamParts = {
  readonly reports: Pick<ReportStore, 'appendedAfter' | 'position'>;
  readonly delivery: LiveDelivery;
  readonly eventIds: Pick<EventIds, 'encode'>;
  readonly longWork: LongWork;
  readonly rules: SocketRules;
  readonly monotonicMs: () => number;
  /** Reports observed before are invisible. */
  readonly oldestMs: () => number;
};

/** Whose stream it is, what it reads, and where it resumes. */
export type EventReader = {
  readonly userId: string;
  readonly feedIds: readonly FeedId[];
  readonly after: ResumePoint | undefined;
};

/** Runs a stream whose head was sent. Calls `onClose` once, at its end. */
export function holdEventStream(
  parts: EventStreamParts,
  response: ServerResponse,
  { userId, feedIds, after }: EventReader,
  tally: Tally,
  onClose: () => void,
  openInterceptor?: (target: InterceptedTarget) => LiveInterceptor,
): LiveConnection {
  const { delivery, rules, monotonicMs } = parts;
  let position = typeof after === 'number' ? after : delivery.position();
  let commentedMs = monotonicMs();
  let unsubscribe = (): void => {};
  const stalls = response.socket && watchStalls(response.socket, monotonicMs(), rules.keepAliveMs);
  response.socket?.setKeepAlive(true, rules.keepAliveMs); // a client that is gone without a word is found out by the system
  const end = (why: Ending): void => {
    tally.ended ??= why;
    if (why === 'going_away' || why === 'access_ended') response.end();
    else response.destroy();
  };
  const send = (text: Buffer | string): void => {
    if (response.writableEnded || response.destroyed) return;
    response.write(text, 'latin1');
    tally.bytes += text.length;
  };
  const close = (code: number): void => void (code === 1006 ? response.destroy() : response.end());
  const interceptor = openInterceptor?.({ send, end, close });
  const write = interceptor?.write ?? send;
  const deliver = ({ messages, positions, whole }: Burst): void => {
    const first = positions.findIndex((at) => at > position); // those before came while catching up
    if (first < 0) return;
    position = positions.at(-1) ?? position;
    tally.messages += messages.length - first;
    if (whole !== undefined && first === 0 && interceptor === undefined) send(whole);
    else {
      response.cork();
      for (const message of messages.slice(first)) write(message);
      response.uncork();
    }
    if (response.writableLength > rules.liveBufferBytesMax) end('too_slow');
  };
  const writeEvents = (text: Buffer | string, count: number): void => {
    tally.messages += count;
    if (interceptor === undefined) send(text);
    else interceptor.write(Buffer.from(text)); // which may keep it
  };
  /** Positions may be assigned anew from here on. */
  const continueAfterLoss = (): void => {
    position = delivery.position();
    writeEvents(missedEvent(parts, position), 0);
  };
  response.once('close', () => {
    unsubscribe();
    interceptor?.closed();
    onClose();
  });
  response.on('error', () => response.destroy());
  const begin = (from: number): void => {
    if (response.destroyed || response.writableEnded) return;
    position = from;
    const stops = [delivery.subscribe('event', feedIds, deliver), delivery.onMissed(continueAfterLoss)];
    unsubscribe = () => {
      for (const stop of stops) stop();
    };
  };
  write(comment); // so that the client and proxies see that the stream has started
  if (after === undefined) begin(position);
  else {
    const caughtUp = catchUp(parts, response, { userId, feedIds: new Set(feedIds), after, writeEvents, begin });
    caughtUp.catch(() => response.destroy()); // the store does not answer: the client resumes later, from what it has
  }
  return {
    end,
    destroy: () => response.destroy(),
    tend: (now) => {
      interceptor?.tend();
      if (response.writableLength > rules.liveBufferBytesMax) return end('too_slow');
      if (stalls?.isStalled(now)) return end('silent');
      if (now - commentedMs < rules.keepAliveMs) return;
      commentedMs = now;
      write(comment);
    },
  };
}

/** Tells a client to read pages for what came before a position. */
const missedEvent = ({ eventIds }: EventStreamParts, position: number): string =>
  `event: missed\nid: ${eventIds.encode(position)}\ndata: {}\n\n`;

type Catching = {
  readonly userId: string;
  readonly feedIds: ReadonlySet<FeedId>;
  readonly after: ResumePoint;
  /** Writes events, this many of them reports. */
  readonly writeEvents: (text: Buffer | string, reports: number) => void;
  /** Continues with what live delivery sends after a position; called in the same turn in which it was seen to be no further. */
  readonly begin: (position: number) => void;
};

/** `reading`: it continues once the client has read. `behind`: the store does not have yet what live readers got. */
type CatchUpStep = 'reading' | 'behind' | 'over';

/**
 * Writes what was appended since, until live delivery's own position is reached. An account has one catch-up at a time; while one waits for its
 * client to read, the next one has its turn.
 */
const catchUp = async (parts: EventStreamParts, response: ServerResponse, catching: Catching): Promise<void> => {
  const { reports, delivery, longWork } = parts;
  const { userId, after, writeEvents, begin } = catching;
  const newest = await reports.position();
  const giveUp = (reached: number): void => {
    const position = Math.max(delivery.position(), reached);
    writeEvents(missedEvent(parts, position), 0);
    begin(position);
  };
  // A position ahead of all is of a store that was put back.
  if (after === 'foreign' || after > newest || after < newest - resumeReportsMax) return giveUp(newest);
  let position = after;
  const writeSlice = createSliceWriter(parts, writeEvents);
  const readSlice = async (): Promise<CatchUpStep> => {
    const next = await readAfter(parts, position, catching.feedIds);
    const before = position;
    position = next.position;
    if (next.missed) giveUp(position);
    else writeSlice(next);
    if (next.missed) return 'over';
    if (position < delivery.position()) return position > before ? 'reading' : 'behind';
    begin(position);
    return 'over';
  };
  const isGone = (): boolean => response.destroyed || response.writableEnded;
  const read = async (): Promise<CatchUpStep> => {
    let step: CatchUpStep = isGone() ? 'over' : 'reading';
    while (step === 'reading' && !response.socket?.writableNeedDrain)
      step = isGone() ? 'over' : await longWork.slice(readSlice);
    return step;
  };
  for (let step = await longWork.run(userId, read); step !== 'over'; step = await longWork.run(userId, read))
    await (step === 'behind' ? later(behindMs) : drained(response));
};

/** Writes all events of a slice in one piece. */
const createSliceWriter =
  ({ eventIds, oldestMs }: EventStreamParts, writeEvents: Catching['writeEvents']) =>
  ({ reports, positions }: Appended): void => {
    const oldest = oldestMs();
    const length = reports.reduce(
      (sum, { feedId, fullReport }) => sum + renderedLengthMax(feedId, fullReport.length) + eventBytesMax,
      0,
    );
    const text = Buffer.allocUnsafeSlow(length);
    let [count, end] = [0, 0];
    for (const [i, report] of reports.entries()) {
      if (report.observationsMs < oldest) continue;
      end = writeEvent(text, end, report, eventIds.encode(positions[i] as number)); // one for each report
      count += 1;
    }
    if (count > 0) writeEvents(text.subarray(0, end), count);
  };

/** What follows a position. Skips a corrupt report; otherwise a client resuming before it would never get past it. */
const readAfter = async (
  { reports }: EventStreamParts,
  position: number,
  feedIds: ReadonlySet<FeedId>,
): Promise<Appended> => {
  try {
    return await reports.appendedAfter(position, catchUpBatch, feedIds);
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    return { reports: [], positions: [], position: position + 1, missed: false };
  }
};

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/**
 * Waits for a client that reads slower than the store; `tend` ends one that stopped. It listens to the socket: after an offered upgrade, Node no
 * longer emits `drain` on the response.
 */
const drained = ({ socket }: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    if (!socket?.writableNeedDrain) return void setImmediate(resolve);
    const go = (): void => {
      socket.off('drain', go);
      socket.off('close', go);
      resolve();
    };
    socket.on('drain', go);
    socket.on('close', go);
  });
