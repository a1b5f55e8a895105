// The live connections of this process, over any transport: limits them per account, keeps them alive, and ends them when their secret, account or
// entitlement is revoked and when the process drains (D66).

import { ApiError, errorOf, type FeedId, type RouteName } from '@sealpost/protocol';
import type { LiveForm } from './message.ts';
import type { SharedCounts } from './shared-counts.ts';

/** Why a connection ends from our side, with the close code that a WebSocket shows. `silent` ones get none. */
export const endings = {
  going_away: { code: 1001, text: 'This node is going away. Connect again.' },
  access_ended: { code: 1008, text: 'The access of this connection has ended.' },
  too_slow: { code: 1013, text: 'This client reads too slowly.' },
  too_many_frames: { code: 1008, text: 'This client sends too much. Send nothing but a ping now and then.' },
  silent: { code: 1006, text: '' },
} as const;

export type Ending = keyof typeof endings;

/** Who a connection was opened by, and for what. */
export type Opened = {
  readonly route: RouteName;
  readonly requestId: string;
  readonly userId: string;
  readonly secretId: string | undefined;
  readonly feedIds: readonly FeedId[];
};

/** How a connection is held from outside. */
export type LiveConnection = {
  /** Sends the reason where the transport can, and closes; a connection that does not close soon is cut. */
  readonly end: (why: Ending) => void;
  readonly destroy: () => void;
  /** Looks after it, once a second. */
  readonly tend: (nowMs: number) => void;
};

/** What an account may do now; undefined when it may ask for nothing any more. */
export type Access = {
  readonly secretIds: readonly string[];
  readonly readable: ReadonlySet<FeedId>;
};

export type ConnectionsOptions = {
  readonly perAccountMax: number;
  readonly accessOf: (userId: string) => Access | undefined;
  readonly monotonicMs: () => number;
  /** Those of other processes; without it there are none. */
  readonly shared?: Pick<SharedCounts, 'set' | 'elsewhere'> | undefined;
};

export type Connections = ReturnType<typeof createConnections>;

/** Connections end one by one, this far apart, so that clients do not all come back at once; in a hurry, closer. */
const apartMs = 50;
/** The share of the drain time in which connections are ended; the rest is for clients to close. */
const tellingShare = 0.75;

export function createConnections({ perAccountMax, accessOf, monotonicMs, shared }: ConnectionsOptions) {
  const open = new Map<LiveConnection, Opened>();
  const perAccount = new Map<string, number>();
  let draining = false;
  let whenEmpty: (() => void) | undefined;
  const count = (userId: string, by: number): void => {
    const next = (perAccount.get(userId) ?? 0) + by;
    if (next === 0) perAccount.delete(userId);
    else perAccount.set(userId, next);
    shared?.set(userId, next);
  };
  return {
    /** Throws what keeps an account from one more connection. */
    check: (userId: string): void => {
      if (draining) throw errorOf('draining');
      if ((perAccount.get(userId) ?? 0) + (shared?.elsewhere(userId) ?? 0) >= perAccountMax)
        throw new ApiError(
          'too_many_sockets',
          `This account has ${perAccountMax} live connections open, the maximum. Close one first.`,
        );
    },
    /** Counts one from now on. Returns what its owner calls when it is over. */
    add: (connection: LiveConnection, opened: Opened): (() => void) => {
      open.set(connection, opened);
      count(opened.userId, 1);
      return () => {
        if (!open.delete(connection)) return;
        count(opened.userId, -1);
        if (open.size === 0) whenEmpty?.();
      };
    },
    /** Who opened those that are open now. */
    opened: (): Iterable<Opened> => open.values(),
    /** Ends those whose access has ended. */
    review: (): void => {
      const known = new Map([...perAccount.keys()].map((userId) => [userId, accessOf(userId)]));
      for (const [connection, opened] of [...open])
        if (!maySee(opened, known.get(opened.userId))) connection.end('access_ended');
    },
    tend: (): void => {
      const now = monotonicMs();
      for (const connection of [...open.keys()]) connection.tend(now);
    },
    /** Admits no more and ends all, one after another; resolves when none is left, after `deadlineMs` at the latest. */
    drain: (deadlineMs: number): Promise<void> => {
      draining = true;
      const connected = [...open.keys()];
      const everyMs = Math.min(apartMs, (deadlineMs * tellingShare) / Math.max(1, connected.length));
      const startedMs = monotonicMs();
      let told = 0;
      return new Promise((resolve) => {
        const finish = (): void => {
          clearInterval(timer);
          clearTimeout(deadline);
          for (const connection of [...open.keys()]) connection.destroy();
          resolve();
        };
        const tell = (): void => {
          const due = Math.min(connected.length, 1 + Math.floor((monotonicMs() - startedMs) / Math.max(everyMs, 1e-6)));
          for (; told < due; told++) (connected[told] as LiveConnection).end('going_away'); // below the length
        };
        const timer = setInterval(tell, Math.max(1, Math.min(apartMs, everyMs)));
        const deadline = setTimeout(finish, deadlineMs);
        whenEmpty = finish;
        tell();
        if (open.size === 0) finish();
      });
    },
  };
}

const maySee = ({ secretId, feedIds }: Opened, access: Access | undefined): boolean => {
  if (access === undefined || secretId === undefined || !access.secretIds.includes(secretId)) return false;
  return feedIds.every((feedId) => access.readable.has(feedId));
};

/** What a connection was sent, counted as it goes; why we ended it, if we did. */
export type Tally = { messages: number; bytes: number; ended: Ending | undefined };

/** Events of live delivery: connections that start and end, delivered reports. */
export type LiveEvent =
  | { readonly kind: 'liveOpened'; readonly route: RouteName }
  | { readonly kind: 'liveDelivered'; readonly route: RouteName; readonly count: number }
  | {
      readonly kind: 'liveEnded';
      readonly route: RouteName;
      readonly requestId: string;
      readonly userId: string;
      readonly messages: number;
      readonly bytes: number;
      readonly durationMs: number;
      /** Why we ended it; null when the client did. */
      readonly reason: Ending | null;
      /** Of a WebSocket. */
      readonly closeCode: number | null;
    };

/** Whose connection it is, and what goes through it. */
export type InterceptedConnection = Opened & {
  readonly form: LiveForm;
  /** The origin that the client named. */
  readonly origin: string | undefined;
};

/** The connection itself, past the interceptor. */
export type InterceptedTarget = {
  /** Whole messages or comments, as the interceptor got them. */
  readonly send: (message: Buffer | string) => void;
  readonly end: (why: Ending) => void;
  /** Closes with a code where the transport has one; 1006 is a cut. */
  readonly close: (code: number) => void;
};

export type LiveInterceptor = {
  /** Takes messages and comments for the client. */
  readonly write: (message: Buffer | string) => void;
  /** While it is, the connection sends neither pings nor pongs. */
  readonly isSilent: () => boolean;
  /** About once a second. */
  readonly tend: () => void;
  /** The connection is over. */
  readonly closed: () => void;
};

export type OpenInterceptor = (connection: InterceptedConnection, target: InterceptedTarget) => LiveInterceptor;
