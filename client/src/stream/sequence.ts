// Orders a stream: reports from any number of connections become one series per feed ID, each report once. What a connection may
// have missed is read over REST before anything later is delivered.
import { backOffMs, type ReconnectRules, sleep } from '../backoff.ts';
import { type ReceivedReport, windowStartMs } from './received-report.ts';
import type { StreamGap } from './state.ts';

/** One connection from its opening on, or resumed where it was cut; only its identity counts. */
export type Link = { readonly origin: string | undefined };

export type SequenceParts = {
  readonly feedIds: readonly string[];
  /** Deliver a stream from this second on; undefined: from the first live report on. */
  readonly fromOf: (feedId: string) => number | undefined;
  readonly nowMs: () => number;
  /** Pages of what is stored after a moment; `onGap` hears what is no longer kept. */
  readonly readAfter: (
    feedId: string,
    lastMs: number,
    onGap: (gap: StreamGap) => void,
  ) => AsyncIterable<readonly ReceivedReport[]>;
  /** Told once of each gap. */
  readonly onGap: (gap: StreamGap) => void;
  /** Streams whose past is read at once. */
  readonly fillsMax: number;
  readonly deliver: (report: ReceivedReport) => void;
  /** Resolves when the consumer takes more. */
  readonly room: () => Promise<void>;
  /** True when asking again cannot help: the stream ends with this error. */
  readonly isFinal: (error: unknown) => boolean;
  readonly retryAfterMsOf: (error: unknown) => number;
  readonly fail: (error: unknown) => void;
  readonly reconnect: ReconnectRules;
  readonly random: () => number;
  readonly signal: AbortSignal;
};

export type Sequence = {
  /** A connection has begun to deliver; `resumed` when the server goes on where that same connection was cut. */
  readonly opened: (link: Link, resumed: boolean) => void;
  readonly closed: (link: Link) => void;
  readonly receive: (link: Link, report: ReceivedReport) => void;
  /** The server says that it cannot go on where a connection ended. */
  readonly missed: () => void;
};

/** Live reports kept per stream while its past is read; later ones are read over REST instead. */
const heldMax = 256;
/** A window that begins later than this after the last observation leaves a gap; milliseconds. */
const gapMs = 1_000;

type Lane = {
  readonly feedId: string;
  /** The moment of the last delivered report. */
  lastMs: number | undefined;
  /** Connections that have overlapped with what was delivered, so that nothing lies between it and their next report. */
  readonly joined: WeakSet<Link>;
  held: { readonly link: Link; readonly report: ReceivedReport }[];
  filling: boolean;
  again: boolean;
};

/** Everything that the functions below share. */
type Board = {
  readonly parts: SequenceParts;
  readonly lanes: ReadonlyMap<string, Lane>;
  readonly live: Set<Link>;
  /** Lanes whose past is to be read, in order. */
  readonly waiting: Lane[];
  /** Where a lane's past begins that has delivered nothing yet; set by the first connection. */
  startMs: number | undefined;
  fills: number;
};

export const createSequence = (parts: SequenceParts): Sequence => {
  const lanes = new Map<string, Lane>();
  for (const feedId of parts.feedIds) {
    const from = parts.fromOf(feedId);
    const lastMs = from === undefined ? undefined : from * 1_000 - 1;
    lanes.set(feedId, { feedId, lastMs, joined: new WeakSet(), held: [], filling: false, again: false });
  }
  const board: Board = { parts, lanes, live: new Set(), waiting: [], startMs: undefined, fills: 0 };
  return {
    opened: (link, resumed) => {
      const isAlone = board.live.size === 0;
      const isFirst = board.startMs === undefined;
      board.startMs ??= Math.floor(parts.nowMs() / 1_000) * 1_000 - 1;
      board.live.add(link);
      if (resumed) return;
      for (const lane of lanes.values()) {
        // Nothing came before the first connection of all, unless a start was asked for.
        if (isFirst && lane.lastMs === undefined) lane.joined.add(link);
        // While another connection is live it carries the quiet streams; the first report of a lively one shows whether it joins.
        else if (isAlone) fill(board, lane);
      }
    },
    closed: (link) => void board.live.delete(link),
    receive: (link, report) => {
      const lane = lanes.get(report.report.feedID);
      if (lane !== undefined) take(board, lane, link, report, gapMs);
    },
    missed: () => {
      for (const lane of lanes.values()) fill(board, lane);
    },
  };
};

/** Takes a live report: delivers it, drops it, or keeps it until what lies before it was read. */
const take = (board: Board, lane: Lane, link: Link, report: ReceivedReport, gapMaxMs: number): void => {
  const { lastMs, joined } = lane;
  // The same report as the last delivered one: whatever comes after it comes over this connection too. An older one may just be late.
  if (report.observationsMs === lastMs) joined.add(link);
  if (lastMs !== undefined && report.observationsMs <= lastMs) return;
  const leavesGap = lastMs !== undefined && windowStartMs(report) > lastMs + gapMaxMs;
  if (!lane.filling && joined.has(link) && !leavesGap) pass(board, lane, report);
  else {
    if (!lane.filling) fill(board, lane);
    if (lane.held.length < heldMax) lane.held.push({ link, report });
    // It will be read over REST instead.
    else lane.again = true;
  }
};

const pass = ({ parts }: Board, lane: Lane, report: ReceivedReport): void => {
  if (lane.lastMs !== undefined && report.observationsMs <= lane.lastMs) return;
  lane.lastMs = report.observationsMs;
  parts.deliver(report);
};

/** Goes on after what is no longer kept; told once, because it is not asked for again. */
const skip = ({ parts }: Board, lane: Lane, gap: StreamGap): void => {
  lane.lastMs = gap.to * 1_000 - 1;
  parts.onGap(gap);
};

/** Has a lane's past read, once more where that is under way. */
const fill = (board: Board, lane: Lane): void => {
  if (lane.filling) {
    lane.again = true;
    return;
  }
  lane.filling = true;
  board.waiting.push(lane);
  startFills(board);
};

const startFills = (board: Board): void => {
  while (board.fills < board.parts.fillsMax) {
    const lane = board.waiting.shift();
    if (lane === undefined) return;
    board.fills += 1;
    void fillLane(board, lane).then(() => {
      board.fills -= 1;
      release(board, lane);
      startFills(board);
    });
  }
};

const release = (board: Board, lane: Lane): void => {
  if (board.parts.signal.aborted) return;
  // Asked for between the last page and now.
  if (lane.again) {
    board.waiting.push(lane);
    return;
  }
  lane.filling = false;
  const held = lane.held.sort((a, b) => a.report.observationsMs - b.report.observationsMs);
  lane.held = [];
  // A gap that is still there was just asked for: it is the server's own.
  for (const { link, report } of held) take(board, lane, link, report, Number.POSITIVE_INFINITY);
};

/** Delivers what is stored after the last delivered report. Tries until it has worked, the stream has ended, or trying is useless. */
const fillLane = async (board: Board, lane: Lane): Promise<void> => {
  const { readAfter, room, isFinal, retryAfterMsOf, fail, reconnect, random, signal } = board.parts;
  for (let failures = 0; !signal.aborted; ) {
    // Who is live before the first page is asked for loses nothing between the last page and its next report.
    const covered = [...board.live];
    lane.again = false;
    try {
      const onGap = (gap: StreamGap): void => skip(board, lane, gap);
      for await (const page of readAfter(lane.feedId, lane.lastMs ?? board.startMs ?? 0, onGap)) {
        for (const report of page) pass(board, lane, report);
        lane.held = lane.held.filter(({ report }) => report.observationsMs > (lane.lastMs ?? 0));
        await room();
        if (signal.aborted) return;
      }
      for (const link of covered) lane.joined.add(link);
      if (!lane.again) return;
    } catch (error) {
      if (signal.aborted) return;
      if (isFinal(error)) {
        fail(error);
        return;
      }
      await sleep(backOffMs(reconnect, failures, random, retryAfterMsOf(error)), signal);
      failures += 1;
    }
  }
};
