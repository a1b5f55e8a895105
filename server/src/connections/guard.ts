// Ends every connection of a listener, whatever its client does: it destroys those that ignore our FIN, never finish a TLS handshake or do not read,
// and all at the deadline of a drain. Limits connections and unread bytes (D125, D126).
import type { Server, Socket } from 'node:net';
import { answerUnderWay } from './client-error.ts';
import { bytesWaiting, createStallWatch, type StallWatch } from './stall.ts';
import { createUnread, type Unread, type UnreadRules } from './unread.ts';

/** Why a connection was closed without an answer, or in the middle of one. */
export const dropReasons = ['connections', 'address', 'unread', 'pipelined', 'accept'] as const;
export type DropReason = (typeof dropReasons)[number];

export type GuardRules = UnreadRules & {
  /** Connections open at once. Near it, those that never authenticated are dropped for new ones, oldest first. */
  readonly connectionsMax: number;
  /** Connections of one address; 0: as many as there are. */
  readonly connectionsPerAddress: number;
  /** What an address is counted as; undefined for one that is not limited, a proxy say. */
  readonly addressOf: (peer: string) => string | undefined;
};

export type GuardParts = {
  readonly rules: GuardRules;
  readonly monotonicMs: () => number;
  readonly onDropped: (reason: DropReason) => void;
};

/** How long a TLS handshake may take. */
export const handshakeMaxMs = 5_000;
/** A client that ignores our FIN is cut after this long. */
const endedMaxMs = 1_000;
const tendEveryMs = 500;
/** The share of connections that is kept free for clients that are still to authenticate. */
const reserveShare = 1 / 16;
/**
 * Offenses of an address in a second: a request with a body in chunks, or a connection that runs too far ahead of its answers. 64 KB of either
 * are parsed before anything can be refused, which takes up to 18 ms.
 */
const offensesPerSecondMax = 10;
/** Requests that may wait on one connection behind the one that is answered. */
const pipelinedMax = 64;

type Connection = Unread & {
  readonly raw: Socket;
  /** What requests and answers go through: `raw`, or the TLS socket once there is one. */
  front: Socket | undefined;
  owner: string | undefined;
  readonly address: string | undefined;
  readonly openedMs: number;
  isStranger: boolean;
  account: string | undefined;
  endedMs: number | undefined;
  watch: StallWatch | undefined;
  /** Is it among those that bytes wait for? */
  isCounted: boolean;
  pipelined: number;
  /** No further request is answered: the parser failed, and may have skipped one. */
  isEnding: boolean;
  readonly answered: (userId: string | undefined) => void;
  readonly noteOffense: () => void;
  readonly drop: (reason: DropReason) => void;
};

const guarded = Symbol('connection');
type Guarded = { [guarded]?: Connection };

const connectionOf = (socket: Socket): Connection | undefined => (socket as Guarded)[guarded]; // the property is set below

/** Can this socket be answered? A TLS socket that has not shaken hands is not known here. */
export const isAnswerable = (socket: Socket): boolean => connectionOf(socket) !== undefined;

/** To be called once an answer was written: whose it is, and whether it waits for its client. Costs next to nothing where it does not. */
export const noteAnswer = (socket: Socket, userId: string | undefined): void => {
  const connection = connectionOf(socket);
  if (connection === undefined) return;
  if (socket.writableLength > 0 || (userId !== undefined && connection.isStranger)) connection.answered(userId);
};

/** To be called for a request with a body in chunks, which nothing reads: too many from one address end its connections, and new ones for a second. */
export const noteChunked = (socket: Socket): void => connectionOf(socket)?.noteOffense();

/** Watches the connection that a socket belongs to, TLS or plain. */
export const watchStalls = (socket: Socket, nowMs: number, patienceMs: number): StallWatch =>
  createStallWatch(socket, connectionOf(socket)?.raw ?? socket, nowMs, patienceMs);

/**
 * Closes a connection once every request before now is answered. Requests that are parsed later are never answered: the one that failed to parse
 * was before them, and each response would be taken for that of another request.
 */
export function endAfterAnswers(socket: Socket): void {
  const connection = connectionOf(socket);
  if (connection === undefined || connection.isEnding) return;
  connection.isEnding = true;
  closeWhenAnswered(socket, connection.pipelined);
}

function closeWhenAnswered(socket: Socket, queued: number): void {
  const answer = answerUnderWay(socket);
  if (answer === undefined) socket.destroySoon();
  else answer.once('close', () => (queued === 0 ? socket.destroySoon() : closeWhenAnswered(socket, queued - 1)));
}

type Turn = { readonly socket: Socket | null; readonly once: (event: 'socket', listener: () => void) => unknown };

/**
 * Handles the requests of one connection one at a time: node parses all that a client sent, and gives an answer its socket when those before
 * it are sent. A client that runs too far ahead is cut.
 */
export const inTurn =
  <Q extends { readonly socket: Socket }, S extends Turn>(handle: (request: Q, response: S) => void) =>
  (request: Q, response: S): void => {
    const connection = connectionOf(request.socket);
    if (connection === undefined || connection.isEnding || !request.socket.writable) return;
    if (response.socket !== null) return void handle(request, response);
    connection.pipelined += 1;
    if (connection.pipelined > pipelinedMax) {
      connection.drop('pipelined');
      return void connection.noteOffense();
    }
    response.once('socket', () => {
      connection.pipelined -= 1;
      handle(request, response);
    });
  };

/** What a guard knows of its connections. */
type Table = GuardParts & {
  readonly open: Set<Connection>;
  /** Those that never authenticated, oldest first. */
  readonly strangers: Set<Connection>;
  /** The others, by the account that authenticated first, oldest first. */
  readonly accounts: Map<string, Set<Connection>>;
  readonly addresses: ReturnType<typeof createAddressCounts>;
  readonly offenses: ReturnType<typeof createOffenses>;
  readonly unread: ReturnType<typeof createUnread>;
};

export type ConnectionGuard = ReturnType<typeof createConnectionGuard>;

export const createConnectionGuard = (parts: GuardParts) => {
  const { rules, monotonicMs } = parts;
  const table: Table = {
    ...parts,
    open: new Set(),
    strangers: new Set(),
    accounts: new Map(),
    addresses: createAddressCounts(rules.connectionsPerAddress),
    offenses: createOffenses(monotonicMs),
    unread: createUnread(rules),
  };
  const { open, unread } = table;
  const timer = setInterval(() => {
    const nowMs = monotonicMs();
    for (const connection of open) tend(table, connection, nowMs);
  }, tendEveryMs).unref();
  return {
    watch: (server: Server, isTls: boolean): void => {
      server.on('connection', (raw) => admit(table, raw, isTls));
      server.on('secureConnection', (front: Socket & { readonly _parent?: Socket }) => {
        const connection = front._parent && connectionOf(front._parent); // node's own link, on every release that we run on
        if (connection === undefined) return;
        connection.front = front;
        (front as Guarded)[guarded] = connection; // a property of our own
      });
    },
    /** Connections that are open, and bytes that wait for their clients. */
    counts: () => ({ connections: open.size, unreadBytes: unread.total() }),
    /** Destroys connections on which nothing was ever received. */
    destroySilent: (): void => {
      for (const { raw } of [...open]) if (raw.bytesRead === 0) raw.destroy();
    },
    /** Destroys what is open, and looks after nothing any more. */
    destroyAll: (): void => {
      clearInterval(timer);
      for (const connection of [...open]) {
        connection.raw.destroy();
        remove(table, connection);
      }
    },
  };
};

const remove = ({ open, strangers, accounts, addresses, unread }: Table, connection: Connection): void => {
  if (!open.delete(connection)) return;
  strangers.delete(connection);
  const { account } = connection;
  const own = account === undefined ? undefined : accounts.get(account);
  own?.delete(connection);
  if (account !== undefined && own?.size === 0) accounts.delete(account);
  addresses.remove(connection.address);
  unread.forget(connection);
};

/** Counts a new connection, and drops it, or another one for it, where there are too many. */
const admit = (table: Table, raw: Socket, isTls: boolean): void => {
  const { rules, open, strangers, addresses, offenses } = table;
  const connection = createConnection(table, raw, isTls);
  (raw as Guarded)[guarded] = connection; // a property of our own
  open.add(connection);
  strangers.add(connection);
  raw.once('close', () => remove(table, connection));
  if (!addresses.add(connection.address) || offenses.areTooMany(connection.address))
    return void connection.drop('address');
  if (open.size <= authenticatedMax(rules)) return;
  const [oldest] = strangers;
  if (oldest !== undefined && oldest !== connection) oldest.drop('connections');
  else if (open.size > rules.connectionsMax) connection.drop('connections');
};

const authenticatedMax = ({ connectionsMax }: GuardRules): number =>
  connectionsMax - Math.floor(connectionsMax * reserveShare);

/** Counts a connection for its account. Where accounts take what is kept free for others, the one that has most loses its oldest. */
const authenticate = ({ rules, open, strangers, accounts }: Table, connection: Connection, account: string): void => {
  connection.isStranger = false;
  connection.account = account;
  strangers.delete(connection);
  const own = accounts.get(account) ?? new Set();
  accounts.set(account, own.add(connection));
  if (open.size - strangers.size <= authenticatedMax(rules)) return;
  let most = own;
  for (const other of accounts.values()) if (other.size > most.size) most = other;
  const [oldest] = most;
  oldest?.drop('connections');
};

const createConnection = (table: Table, raw: Socket, isTls: boolean): Connection => {
  const { rules, monotonicMs, onDropped } = table;
  const connection: Connection = {
    raw,
    front: isTls ? undefined : raw,
    owner: undefined,
    address: rules.addressOf(raw.remoteAddress ?? ''),
    openedMs: monotonicMs(),
    isStranger: true,
    account: undefined,
    endedMs: undefined,
    watch: undefined,
    isCounted: false,
    pipelined: 0,
    isEnding: false,
    waitingBytes: () => (connection.front === undefined ? 0 : bytesWaiting(connection.front, raw)),
    movedMs: () => connection.watch?.movedMs() ?? monotonicMs(),
    cut: () => connection.drop('unread'),
    drop: (reason) => {
      if (raw.destroyed) return;
      onDropped(reason);
      raw.destroy();
      remove(table, connection);
    },
    answered: (userId) => {
      if (!table.open.has(connection)) return; // its client has left before the answer, and nothing would forget it again
      const owner = userId ?? connection.owner ?? connection.address;
      if (owner !== connection.owner && connection.isCounted) forget(table, connection);
      connection.owner = owner;
      if (userId !== undefined && connection.isStranger) authenticate(table, connection, userId);
      if (!raw.destroyed && connection.waitingBytes() > 0) count(table, connection);
    },
    noteOffense: () => {
      const { address } = connection;
      table.offenses.add(address);
      if (!table.offenses.areTooMany(address)) return;
      for (const other of [...table.strangers]) if (other.address === address) other.drop('address');
    },
  };
  return connection;
};

const count = ({ unread }: Table, connection: Connection): void => {
  connection.isCounted = true;
  unread.count(connection);
};

const forget = ({ unread }: Table, connection: Connection): void => {
  connection.isCounted = false;
  connection.watch = undefined;
  unread.forget(connection);
};

/** Looks after one connection, twice a second. */
const tend = (table: Table, connection: Connection, nowMs: number): void => {
  const { raw, front } = connection;
  if (front === undefined) {
    if (nowMs - connection.openedMs >= handshakeMaxMs + endedMaxMs) raw.destroy();
    return;
  }
  if (front.writableFinished) {
    connection.endedMs ??= nowMs;
    if (nowMs - connection.endedMs >= endedMaxMs) raw.destroy();
    return;
  }
  if (bytesWaiting(front, raw) === 0) {
    if (connection.isCounted) forget(table, connection);
    return;
  }
  connection.watch ??= createStallWatch(front, raw, nowMs);
  if (connection.watch.isStalled(nowMs)) connection.drop('unread');
  else count(table, connection);
};

const createAddressCounts = (max: number) => {
  const counts = new Map<string, number>();
  return {
    /** Counts one more; false when there are too many now. */
    add: (address: string | undefined): boolean => {
      if (address === undefined || max === 0) return true;
      const count = (counts.get(address) ?? 0) + 1;
      counts.set(address, count);
      return count <= max;
    },
    remove: (address: string | undefined): void => {
      const count = address === undefined ? 0 : (counts.get(address) ?? 0);
      if (address === undefined || count === 0) return;
      if (count === 1) counts.delete(address);
      else counts.set(address, count - 1);
    },
  };
};

/** Counts offenses by address, from zero every second. */
const createOffenses = (monotonicMs: () => number) => {
  const counts = new Map<string, number>();
  let sinceMs = monotonicMs();
  return {
    add: (address: string | undefined): void => {
      if (address !== undefined) counts.set(address, (counts.get(address) ?? 0) + 1);
    },
    areTooMany: (address: string | undefined): boolean => {
      if (counts.size === 0 || address === undefined) return false;
      if (monotonicMs() - sinceMs >= 1_000) {
        counts.clear();
        sinceMs = monotonicMs();
      }
      return (counts.get(address) ?? 0) > offensesPerSecondMax;
    },
  };
};

/** Neither the server nor its connections keep the process alive. To be called before it listens. */
export const letProcessEnd = (server: Server): void => {
  server.unref();
  server.on('connection', (socket: Socket) => socket.unref());
};
