// Applies faults to live connections: between what is delivered and what is sent. Everything that waits here is bounded and ends with its connection.
import type { FeedId } from '@sealpost/protocol';
import type {
  InterceptedConnection,
  InterceptedTarget,
  LiveInterceptor,
  OpenInterceptor,
} from '@sealpost/server/live/connections';
import { toFrame } from '@sealpost/server/live/message';
import { type BadReports, observedMs, type SentReport } from './bad-reports.ts';
import type { AppliedFault, Decisions, FaultSubject } from './decisions.ts';
import { delayOf } from './intercept.ts';

export type TapParts = {
  readonly decisions: Decisions;
  readonly badReports: BadReports;
  readonly monotonicMs: () => number;
};

/** Bytes that may wait on one connection; a client for which more waits is closed as too slow. */
const waitingBytesMax = 4_194_304;
/** How long a message waits for the next one of its stream. */
const reorderMaxMs = 5_000;
const closeCodeDefault = 1_011;

/** A message with its report, or a comment. */
type Block = { readonly text: Buffer | string; readonly report?: SentReport | undefined; readonly id?: string };

export function createLiveInterceptors(parts: TapParts) {
  const open = new Set<OpenedTap>();
  const stop = parts.decisions.onChange(() => {
    for (const interceptor of [...open]) interceptor.tend();
  });
  const openInterceptor: OpenInterceptor = (connection, target) => {
    const interceptor = createTap(parts, connection, target, () => open.delete(interceptor));
    open.add(interceptor);
    interceptor.tend();
    return interceptor;
  };
  return {
    openInterceptor,
    /** Sends what waits, and delays nothing any more. */
    drain: (): void => {
      stop();
      for (const interceptor of open) interceptor.release();
    },
  };
}

type OpenedTap = LiveInterceptor & { readonly release: () => void };

const createTap = (
  parts: TapParts,
  connection: InterceptedConnection,
  target: InterceptedTarget,
  onOver: () => void,
): OpenedTap => {
  const { decisions } = parts;
  const { route, userId: account, feedIds } = connection;
  const subject: FaultSubject = { route, account, feedIds };
  const queue = createQueue(parts.monotonicMs, target);
  const isDecided = createOnce();
  let isOver = false;
  const over = (): void => {
    isOver = true;
    queue.clear();
    onOver();
  };
  const close = ({ fault: { code = closeCodeDefault } }: AppliedFault<'close'>): void => {
    over();
    target.close(code);
  };
  const cut = (): void => {
    over();
    target.close(1_006);
  };
  const isSilent = (): boolean =>
    decisions.has(['silent']) && decisions.pending('silent', subject).some(({ key, decide }) => isDecided(key, decide));
  /** Ends the connection where a fault says so: each fault is asked once. */
  const check = (): void => {
    if (isOver || !decisions.has(['close', 'revoked', 'origin-down'])) return;
    const closing = decisions.pending('close', subject).find(({ key, decide }) => isDecided(key, decide));
    if (closing !== undefined) return void close(closing);
    if (decisions.pending('revoked', subject).some(({ key, decide }) => isDecided(key, decide)))
      target.end('access_ended');
    const down = decisions.pending('origin-down', subject).find(({ fault }) => fault.origin === connection.origin);
    if (down !== undefined && isDecided(down.key, down.decide)) target.close(1_006);
  };
  const deliver = (block: Block): void => {
    const { report } = block;
    if (isOver || isSilent()) return;
    if (report === undefined) return void target.send(block.text);
    const about = { route, account, feedIds: [report.feedID] };
    const closing = decisions.first('close', about);
    if (closing !== undefined) return void close(closing);
    if (decisions.has(['stop', 'gap']) && decisions.hiding(about, report.feedID, observedMs(report))) return;
    const sent = parts.badReports(report, about, true, () => {});
    const texts = sent.map((one) => (one === report ? block.text : render(connection, block, one)));
    const twice = decisions.first('duplicate', about);
    const times = twice === undefined ? 1 : (twice.fault.times ?? 2);
    queue.add(
      report.feedID,
      texts.flatMap((text) => Array<typeof text>(times).fill(text)),
      () => decisions.first('reorder', about) !== undefined,
      decisions.all('delay', about).reduce((sum, one) => sum + delayOf(one), 0),
    );
  };
  return {
    write: (message) => {
      if (!decisions.has() && queue.isEmpty()) return target.send(message);
      try {
        for (const block of blocksOf(connection, message)) deliver(block);
      } catch {
        cut(); // delivery to others goes on: an error here would repeat for all
      }
    },
    isSilent,
    tend: () => {
      check();
      queue.tend();
    },
    closed: over,
    release: queue.release,
  };
};

/** Asks for a decision once for each key, and remembers it for as long as there is the key. */
const createOnce = () => {
  const decided = new WeakMap<object, boolean>();
  return (key: object, decide: () => boolean): boolean => {
    const known = decided.get(key);
    if (known !== undefined) return known;
    const decision = decide();
    decided.set(key, decision);
    return decision;
  };
};

type Waiting = { readonly feedId: FeedId; readonly text: Buffer | string; readonly dueMs: number };
type Held = { readonly texts: readonly (Buffer | string)[]; readonly untilMs: number };

/** What is sent late, the messages of a stream in order, and what waits for the next message of its stream. */
const createQueue = (monotonicMs: () => number, target: InterceptedTarget) => {
  /** By the time when they are due. */
  let waiting: Waiting[] = [];
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const held = new Map<FeedId, Held>();
  const wakeUp = (): void => {
    clearTimeout(timer);
    const [next] = waiting;
    timer = next && setTimeout(pump, Math.max(1, next.dueMs - monotonicMs())).unref();
  };
  const pump = (): void => {
    const nowMs = monotonicMs();
    const due = waiting.findIndex(({ dueMs }) => dueMs > nowMs);
    for (const { text } of waiting.splice(0, due === -1 ? waiting.length : due)) {
      bytes -= text.length;
      target.send(text);
    }
    wakeUp();
  };
  const push = (feedId: FeedId, text: Buffer | string, delayMs: number): void => {
    const before = waiting.findLast((one) => one.feedId === feedId);
    if (delayMs === 0 && before === undefined) return void target.send(text);
    const dueMs = Math.max(before?.dueMs ?? 0, monotonicMs() + delayMs);
    waiting.splice(waiting.findLastIndex((one) => one.dueMs <= dueMs) + 1, 0, { feedId, text, dueMs });
    bytes += text.length;
    if (bytes > waitingBytesMax) target.end('too_slow');
    else wakeUp();
  };
  const letGo = (feedId: FeedId, delayMs = 0): void => {
    const { texts = [] } = held.get(feedId) ?? {};
    held.delete(feedId);
    for (const text of texts) push(feedId, text, delayMs);
  };
  const clear = (): void => {
    clearTimeout(timer);
    waiting = [];
    bytes = 0;
    held.clear();
  };
  return {
    isEmpty: (): boolean => waiting.length === 0 && held.size === 0,
    add: (feedId: FeedId, texts: readonly (Buffer | string)[], isHeld: () => boolean, delayMs: number): void => {
      if (!held.has(feedId) && isHeld()) return void held.set(feedId, { texts, untilMs: monotonicMs() + reorderMaxMs });
      for (const text of texts) push(feedId, text, delayMs);
      letGo(feedId, delayMs);
    },
    tend: (): void => {
      for (const [feedId, { untilMs }] of [...held]) if (untilMs <= monotonicMs()) letGo(feedId);
    },
    release: (): void => {
      for (const feedId of [...held.keys()]) letGo(feedId);
      const all = waiting;
      clear();
      for (const { text } of all) target.send(text);
    },
    clear,
  };
};

/** The messages in what is written: one frame, or any number of events and comments. */
const blocksOf = ({ form }: InterceptedConnection, message: Buffer | string): readonly Block[] => {
  if (form !== 'event') {
    const frame = Buffer.isBuffer(message) ? message : Buffer.from(message, 'latin1');
    const length = (frame[1] ?? 0) & 0x7f;
    const start = length < 126 ? 2 : length === 126 ? 4 : 10;
    return [{ text: frame, report: JSON.parse(frame.toString('latin1', start)).report }];
  }
  return (Buffer.isBuffer(message) ? message.toString('latin1') : message).split(/(?<=\n\n)/).map((text) => {
    const [, id, data] = /^id: (.*)\ndata: (.*)\n\n$/.exec(text) ?? [];
    return data === undefined || id === undefined ? { text } : { text, id, report: JSON.parse(data) };
  });
};

const render = ({ form }: InterceptedConnection, { id = '' }: Block, report: SentReport): Buffer | string =>
  form === 'event' ? `id: ${id}\ndata: ${JSON.stringify(report)}\n\n` : toFrame(JSON.stringify({ report }));
