// Composes live delivery: what follows the store, connections and the handlers of its routes. The pipeline has already checked the request; this adds the limit of
// connections per account (D66).
import { ApiError, type FeedId } from '@sealpost/protocol';
import { readableByAccount } from '../access/entitlements.ts';
import type { LongWork } from '../access/long-work.ts';
import type { LiveHandlers } from '../http/pipeline.ts';
import type { Handler, LiveContext } from '../http/routes/context.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import { retentionEdgeMs } from '../store/retention.ts';
import type { Store } from '../store/store.ts';
import type { InterceptedConnection, LiveEvent, LiveInterceptor, OpenInterceptor, Tally } from './connections.ts';
import { type Access, type Connections, createConnections, type LiveConnection, type Opened } from './connections.ts';
import { createEventIds, type EventIds } from './event-id.ts';
import { type EventStreamParts, holdEventStream } from './event-stream.ts';
import { type LiveDelivery, openLiveDelivery } from './live-delivery.ts';
import type { LiveForm } from './message.ts';
import type { SharedCounts } from './shared-counts.ts';
import { checkHandshake, createWebSockets, type SocketConnection, type SocketRules } from './sockets.ts';

export type LiveRules = SocketRules & {
  /** Connections of one account at once. */
  readonly socketsPerAccount: number;
  readonly retentionDays: number;
};

export type LiveOptions = {
  readonly store: Store;
  /** Of the streams of this deployment's network. */
  readonly view: AdminView;
  readonly rules: LiveRules;
  readonly longWork: LongWork;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly observe: (event: LiveEvent) => void;
  readonly onTrouble: (error: unknown) => void;
  /** The connections of other processes, where there are some. */
  readonly shared?: SharedCounts | undefined;
  /** Runs around every live connection. */
  readonly openInterceptor?: OpenInterceptor | undefined;
};

export type Live = {
  readonly handlers: LiveHandlers;
  /** Who opened the connections that are open now, with which secret. */
  readonly opened: () => Iterable<Opened>;
  /** The position of the last report that was handed to live connections. */
  readonly position: () => number;
  /** Ends all connections within a time, and then everything else. */
  readonly drain: (deadlineMs: number) => Promise<void>;
};

const tendEveryMs = 1_000;
const routeOfForm = { seconds: 'socket', milliseconds: 'socketMs', event: 'reportStream' } as const satisfies Record<
  LiveForm,
  keyof LiveHandlers
>;

export async function openLive(options: LiveOptions): Promise<Live> {
  const { store, view, rules, longWork, nowMs, monotonicMs, observe, onTrouble, openInterceptor } = options;
  const connections = createConnections({
    perAccountMax: rules.socketsPerAccount,
    accessOf: (userId) => accessOf(view, userId),
    monotonicMs,
    shared: options.shared,
  });
  const eventIds = createEventIds(await store.reports.lineage());
  const delivery = await openLiveDelivery({
    reports: store.reports,
    eventIds,
    feedIds: view.current().streams.keys(),
    onDelivered: (form, count) => observe({ kind: 'liveDelivered', route: routeOfForm[form], count }),
    onTrouble,
  });
  const stopReviews = view.onReload(connections.review);
  const timer = setInterval(connections.tend, tendEveryMs).unref();
  const openSession = createSessions(connections, monotonicMs, observe);
  const oldestMs = () => retentionEdgeMs(nowMs(), rules.retentionDays);
  const sockets = { connections, delivery, accept: createWebSockets(rules, monotonicMs), openSession, openInterceptor };
  return {
    handlers: {
      socket: createSocketRoute('seconds', sockets),
      socketMs: createSocketRoute('milliseconds', sockets),
      reportStream: createEventRoute(
        { reports: store.reports, delivery, eventIds, longWork, rules, monotonicMs, oldestMs },
        eventIds,
        connections,
        openSession,
        openInterceptor,
      ),
    },
    opened: connections.opened,
    position: delivery.position,
    drain: async (deadlineMs) => {
      await connections.drain(deadlineMs);
      stopReviews();
      clearInterval(timer);
      delivery.close();
    },
  };
}

const accessOf = (view: AdminView, userId: string): Access | undefined => {
  const { accounts, streams } = view.current();
  const account = accounts.get(userId);
  if (account === undefined || account.disabledAt !== null) return undefined;
  const secretIds = account.secrets.flatMap(({ id, revokedAt }) => (revokedAt === null ? [id] : []));
  try {
    return { secretIds, readable: readableByAccount(account, streams) };
  } catch {
    return undefined; // its next request fails with the reason; the connections of others still need the review
  }
};

/** A connection while it lasts. It knows nothing of its request, which would stay in memory for as long as the connection. */
type Session = {
  readonly tally: Tally;
  /** Counts the connection from now on, which stops with `stop` at its end. */
  readonly start: (connection: LiveConnection, stop: () => void) => void;
  /** To be called at its end. */
  readonly over: (closeCode: number | null) => void;
};

/** Counts connections while they last and reports when they start and end. */
const createSessions = (connections: Connections, monotonicMs: () => number, observe: LiveOptions['observe']) => {
  const report = (opened: Opened, { messages, bytes, ended }: Tally, startedMs: number, closeCode: number | null) => {
    const { route, requestId, userId } = opened;
    const durationMs = monotonicMs() - startedMs;
    const reason = ended ?? null;
    observe({ kind: 'liveEnded', route, requestId, userId, messages, bytes, durationMs, reason, closeCode });
  };
  return (opened: Opened): Session => {
    const startedMs = Math.floor(monotonicMs());
    const tally: Tally = { messages: 0, bytes: 0, ended: undefined };
    let remove = (): void => {};
    let stopDelivery = (): void => {};
    return {
      tally,
      start: (connection, stop) => {
        remove = connections.add(connection, opened);
        stopDelivery = stop;
        observe({ kind: 'liveOpened', route: opened.route });
      },
      over: (closeCode) => {
        stopDelivery();
        remove();
        report(opened, tally, startedMs, closeCode);
      },
    };
  };
};

const openedBy = (live: LiveContext, route: Opened['route'], feedIds: readonly FeedId[]): Opened => {
  const { requestId, userId, secretId } = live;
  return { route, requestId, userId, secretId, feedIds };
};

/** The pipeline gives one to every live route. */
const required = (live: LiveContext | undefined): LiveContext => {
  if (live === undefined) throw new Error('A live route was asked without its connection.');
  return live;
};

const echoedCharactersMax = 80;

/** Rejects an origin that is not configured (D31). Where none is configured, the header is ignored. */
const checkOrigin = (origin: string | undefined, origins: readonly string[]): void => {
  if (origin === undefined || origins.length === 0 || origins.includes(origin)) return;
  const shown = JSON.stringify(origin.slice(0, echoedCharactersMax));
  const expected = `expected one of ${origins.join(', ')}`;
  throw new ApiError('unknown_origin', `X-Cll-Origin is ${shown}, ${expected}.`, { header: 'X-Cll-Origin' });
};

type SocketRouteParts = {
  readonly connections: Connections;
  readonly delivery: LiveDelivery;
  readonly accept: ReturnType<typeof createWebSockets>;
  readonly openSession: (opened: Opened) => Session;
  readonly openInterceptor: OpenInterceptor | undefined;
};

const createSocketRoute =
  (form: 'seconds' | 'milliseconds', parts: SocketRouteParts): Handler<'socket' | 'socketMs'> =>
  ({ feedIds }, { origin, origins, live }) => {
    checkOrigin(origin, origins);
    const context = required(live);
    const upgrade = checkHandshake(context.upgrade);
    parts.connections.check(context.userId);
    const opened = openedBy(context, routeOfForm[form], feedIds);
    return {
      status: 101,
      cacheControl: 'no-store',
      takeOver: (response, headers) => {
        response.detachSocket(upgrade.request.socket);
        if (!upgrade.socket.readable || !upgrade.socket.writable) return void upgrade.socket.destroy(); // it is gone already
        const { delivery, accept, openSession, openInterceptor } = parts;
        const session = openSession(opened);
        const interceptor = openInterceptor && createInterceptorBefore(openInterceptor, { ...opened, form, origin });
        const socket = accept(
          upgrade,
          headers,
          session.tally,
          interceptor?.over(session.over) ?? session.over,
          interceptor?.isSilent,
        );
        const connection = interceptor?.open(socket) ?? socket;
        session.start(connection, delivery.subscribe(form, feedIds, connection.deliver));
      },
    };
  };

/** Puts an interceptor before a WebSocket. */
const createInterceptorBefore = (openInterceptor: OpenInterceptor, intercepted: InterceptedConnection) => {
  let interceptor: LiveInterceptor | undefined;
  return {
    isSilent: (): boolean => interceptor?.isSilent() ?? false,
    over:
      (over: Session['over']): Session['over'] =>
      (code) => {
        interceptor?.closed();
        over(code);
      },
    open: (socket: SocketConnection): SocketConnection => {
      const send = (message: Buffer | string): void =>
        socket.send(Buffer.isBuffer(message) ? message : Buffer.from(message, 'latin1'));
      const opened = openInterceptor(intercepted, { send, end: socket.end, close: socket.close });
      interceptor = opened;
      return {
        ...socket,
        deliver: ({ messages }) => {
          for (const message of messages) opened.write(message);
        },
        tend: (now) => {
          opened.tend();
          socket.tend(now);
        },
      };
    },
  };
};

const eventHeaders = ['X-Accel-Buffering', 'no'] as const;

const createEventRoute =
  (
    parts: EventStreamParts,
    eventIds: EventIds,
    connections: Connections,
    openSession: (opened: Opened) => Session,
    openInterceptor: OpenInterceptor | undefined,
  ): Handler<'reportStream'> =>
  ({ feedIds }, { live, origin }) => {
    const context = required(live);
    const after = eventIds.parse(context.lastEventId);
    connections.check(context.userId);
    const opened = openedBy(context, 'reportStream', feedIds);
    return {
      status: 200,
      contentType: 'text/event-stream',
      cacheControl: 'no-store',
      headers: eventHeaders,
      takeOver: (response) => {
        const session = openSession(opened);
        const connection = holdEventStream(
          parts,
          response,
          { userId: context.userId, feedIds, after },
          session.tally,
          () => session.over(null),
          openInterceptor && ((target) => openInterceptor({ ...opened, form: 'event', origin }, target)),
        );
        session.start(connection, () => {});
      },
    };
  };
