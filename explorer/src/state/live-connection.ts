// The one connection for live prices: decides when to open a new one, keep it, or close it. The client retries, resumes and backfills.
import { type BackoffRules, backOffMs, type Client, type StreamState } from '@sealpost/client';
import type { ReportJson } from '@sealpost/protocol';

/** What a connection delivers. */
export type Plan = {
  readonly feedIds: readonly string[];
  /** Also deliver reports observed from this second on. */
  readonly from: number | undefined;
};

export type LiveConnectionParts = {
  readonly stream: Client['stream'];
  /** What is wanted now. */
  readonly plan: () => Plan;
  /** Called with what each new connection delivers. */
  readonly onOpen: (plan: Plan) => void;
  readonly onReport: (report: ReportJson) => void;
  readonly onState: (state: LiveState) => void;
  /** A connection delivers these streams from now on; also after it was cut. */
  readonly onLive: (feedIds: ReadonlySet<string>) => void;
  /**
   * The server rejected the connection with a final error. The next attempt is 5 to 60 s later, or at once for `adapted`: the plan has changed, so that
   * the server may accept it.
   */
  readonly onRefused: (error: unknown, feedIds: ReadonlySet<string>) => 'adapted' | 'final';
};

/** `off`: no user is signed in, or nothing is watched. */
export type LiveState = 'off' | 'connecting' | 'live' | 'reconnecting';

export type LiveConnection = {
  /** What is wanted has changed. `fromPast`: a new watch wants past reports too, which needs a new connection. */
  readonly changed: (fromPast: boolean) => void;
  readonly close: () => void;
};

/** Changes within this time share one connection; milliseconds. */
export const gatherMs = 150;
/** Between two connections: scrolling must not use up the rate limit. */
const openEveryMs = 600;
/** How long a connection that delivers more than is wanted is kept. */
export const shrinkMs = 5_000;
/** Between two attempts that the server rejects. */
const refusedRules: BackoffRules = { minMs: 5_000, maxMs: 60_000 };
/** Longest work on reports without a pause, so that a long backfill does not block the page. */
const sliceMs = 8;

type Connection = { readonly feedIds: ReadonlySet<string>; readonly close: () => void };

type Timer = { readonly kind: 'open' | 'shrink'; readonly id: ReturnType<typeof setTimeout> };

/** The state that the functions below share. */
type Board = {
  readonly parts: LiveConnectionParts;
  current: Connection | undefined;
  /** Stays open until the next connection is live, so that no report is missed between the two. */
  previous: Connection | undefined;
  state: LiveState;
  timer: Timer | undefined;
  openedMs: number;
  refusals: number;
};

/** Opens nothing until `changed` is called. */
export function createLiveConnection(parts: LiveConnectionParts): LiveConnection {
  const board: Board = {
    parts,
    current: undefined,
    previous: undefined,
    state: 'off',
    timer: undefined,
    openedMs: Number.NEGATIVE_INFINITY,
    refusals: 0,
  };
  return {
    changed: (fromPast) => {
      const { feedIds } = parts.plan();
      const { current, timer } = board;
      const isCarried = current !== undefined && feedIds.every((feedId) => current.feedIds.has(feedId));
      if (feedIds.length > 0 && (fromPast || !isCarried)) {
        if (timer?.kind !== 'open') setTimer(board, 'open', openDelayMs(board));
      } else if (timer?.kind === 'open') return;
      else if (current !== undefined && feedIds.length < current.feedIds.size) {
        if (timer === undefined) setTimer(board, 'shrink', shrinkMs);
      } else clearTimer(board);
    },
    close: () => closeAll(board),
  };
}

const openDelayMs = ({ openedMs, refusals }: Board): number => {
  const pauseMs = refusals === 0 ? openEveryMs : backOffMs(refusedRules, refusals - 1, () => 1);
  return Math.max(gatherMs, openedMs + pauseMs - performance.now());
};

const clearTimer = (board: Board): void => {
  clearTimeout(board.timer?.id);
  board.timer = undefined;
};

const setTimer = (board: Board, kind: Timer['kind'], ms: number): void => {
  clearTimer(board);
  const run = (): void => {
    board.timer = undefined;
    open(board);
  };
  board.timer = { kind, id: setTimeout(run, ms) };
};

const setState = (board: Board, state: LiveState): void => {
  if (board.state === state) return;
  board.state = state;
  board.parts.onState(state);
};

const closeAll = (board: Board): void => {
  clearTimer(board);
  const { current, previous } = board;
  board.current = undefined;
  board.previous = undefined;
  current?.close();
  previous?.close();
  board.refusals = 0;
  setState(board, 'off');
};

/** Opens a connection for what is wanted now; the one before ends when the new one is live. */
const open = (board: Board): void => {
  const { parts } = board;
  const plan = parts.plan();
  if (plan.feedIds.length === 0) {
    closeAll(board);
    return;
  }
  board.openedMs = performance.now();
  board.previous?.close();
  board.previous = board.current;
  if (board.state !== 'live') setState(board, 'connecting');
  const stream = parts.stream(plan.feedIds, {
    transport: 'sse',
    onGap: () => {}, // the chart shows the gap
    ...(plan.from === undefined ? {} : { from: plan.from }),
    onState: (state) => {
      if (board.current === connection) onPhase(board, connection, state);
    },
  });
  const connection: Connection = { feedIds: new Set(plan.feedIds), close: stream.close };
  board.current = connection;
  parts.onOpen(plan);
  void deliver(stream, parts.onReport).catch((error: unknown) => {
    if (board.current === connection) refused(board, connection, error);
  });
};

const onPhase = (board: Board, { feedIds }: Connection, { phase }: StreamState): void => {
  if (phase === 'closed') return;
  if (phase === 'live') {
    board.previous?.close();
    board.previous = undefined;
    board.refusals = 0;
  }
  // While the previous connection still delivers, the page stays live.
  if (phase !== 'connecting') setState(board, phase);
  if (phase === 'live') board.parts.onLive(feedIds);
};

const refused = (board: Board, { feedIds }: Connection, error: unknown): void => {
  board.previous?.close();
  board.previous = undefined;
  board.current = undefined;
  board.refusals = board.parts.onRefused(error, feedIds) === 'adapted' ? 0 : board.refusals + 1;
  setState(board, 'reconnecting');
  setTimer(board, 'open', openDelayMs(board));
};

const deliver = async (reports: AsyncIterable<ReportJson>, onReport: (report: ReportJson) => void): Promise<void> => {
  let beganMs = performance.now();
  for await (const report of reports) {
    onReport(report);
    if (performance.now() - beganMs < sliceMs) continue;
    await new Promise((resolve) => setTimeout(resolve, 0));
    beganMs = performance.now();
  }
};
