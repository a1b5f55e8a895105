// Ends every connection of a listener, whatever its client does: it destroys those that ignore our FIN, never finish a TLS handshake or do not read,
// and all at the deadline of a drain. Limits connections and unread bytes (D125, D126).

import { constants } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { ApiError, errorOf } from '@sealpost/protocol';
import { bytesGone, bytesWaiting } from './node-internals.ts';

/** Why a connection was closed without an answer, or in the middle of one. */
export const dropReasons = ['connections', 'address', 'unread', 'pipelined', 'accept'] as const;
export type DropReason = (typeof dropReasons)[number];

/** A connection that bytes wait for. */
export type Unread = {
  /** Whose bytes they are: an account, or an address. Undefined: counted for the process alone. */
  readonly owner: string | undefined;
  readonly waitingBytes: () => number;
  /** When its client took something last. */
  readonly movedMs: () => number;
  readonly cut: () => void;
};

export type UnreadRules = {
  readonly unreadBytesMax: number;
  /** For an account, or an address that does not authenticate. */
  readonly unreadBytesPerAccount: number;
};

export type ConnectionRules = UnreadRules & {
  /** Connections open at once. Near it, those that never authenticated are dropped for new ones, oldest first. */
  readonly connectionsMax: number;
  /** Connections of one address; 0: as many as there are. */
  readonly connectionsPerAddress: number;
  /** What an address is counted as; undefined for one that is not limited, a proxy say. */
  readonly addressOf: (peer: string) => string | undefined;
};

export type ConnectionLimitParts = {
  readonly rules: ConnectionRules;
  readonly monotonicMs: () => number;
  readonly onDropped: (reason: DropReason) => void;
};

/** How long a TLS handshake may take. */
const handshakeMaxMs = 5_000;
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
  readonly ends: string;
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
  /** The answer that had its turn last. */
  answer: ServerResponse | undefined;
  /** No further request is answered: the parser failed, and may have skipped one. */
  isEnding: boolean;
  readonly answered: (userId: string | undefined) => void;
  readonly noteOffense: () => void;
  readonly drop: (reason: DropReason) => void;
};

/** By what a TLS socket and the connection under it are the same. */
const endsOf = ({ remoteAddress, remotePort, localAddress }: Socket): string =>
  `${remoteAddress} ${remotePort} ${localAddress}`;

const guarded = Symbol('connection');
type Guarded = { [guarded]?: Connection };

const connectionOf = (socket: Socket): Connection | undefined => (socket as Guarded)[guarded]; // the property is set below

/** Can this socket be answered? A TLS socket that has not shaken hands is not known here. */
export const isAnswerable = (socket: Socket): boolean => connectionOf(socket) !== undefined;

/** To be called once an answer was written: whose it is, and whether it waits for its client. Costs next to nothing where it does not. */
export function noteAnswer(socket: Socket, userId: string | undefined): void {
  const connection = connectionOf(socket);
  if (connection === undefined) return;
  if (socket.writableLength > 0 || (userId !== undefined && connection.isStranger)) connection.answered(userId);
}

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

/**
 * Handles the requests of one connection one at a time: node parses all that a client sent, and gives an answer its socket when those before
 * it are sent. A client that runs too far ahead is cut.
 */
export const inTurn =
  (handle: (request: IncomingMessage, response: ServerResponse) => void) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const connection = connectionOf(request.socket);
    if (connection === undefined || connection.isEnding || !request.socket.writable) return;
    if (response.socket !== null) {
      connection.answer = response;
      handle(request, response);
      return;
    }
    connection.pipelined += 1;
    if (connection.pipelined > pipelinedMax) {
      connection.drop('pipelined');
      return void connection.noteOffense();
    }
    response.once('socket', () => {
      connection.pipelined -= 1;
      connection.answer = response;
      handle(request, response);
    });
  };

/** The parser has released a connection and no longer handles its errors. */
export const destroyOnError = (socket: Socket): void => void socket.on('error', () => socket.destroy());

/** The answer that has its turn on a connection; none between two. */
export function answerUnderWay(socket: Socket): ServerResponse | undefined {
  const answer = connectionOf(socket)?.answer;
  return answer?.socket ? answer : undefined; // Node takes the socket from an answer that is sent
}

/**
 * Makes Node parse what the stream of a TLS connection emits, instead of reading the connection itself. Node's parser drops what is decrypted
 * while it is paused for a slow reader (`HPE_PAUSED`); a stream keeps it. `tests/http/node-tls-pipelining.mjs` shows the defect.
 */
export function parseFromStream(socket: Socket): void {
  const listener = (): void => {};
  socket.on('data', listener).off('data', listener); // Node stops reading the connection itself at the first listener
}

/** Why Node rejected a request, as the error that is answered. */
export function explainClientError(error: NodeJS.ErrnoException): ApiError {
  if (error.code === 'HPE_HEADER_OVERFLOW') return errorOf('head_too_large');
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') return errorOf('request_timeout');
  return new ApiError('malformed_target', 'The request is not valid HTTP/1.1.');
}

/** What connection limits know of a connection. */
type Table = ConnectionLimitParts & {
  readonly open: Set<Connection>;
  /** Those that have not shaken hands, by their ends. */
  readonly handshaking: Map<string, Connection>;
  /** Those that never authenticated, oldest first. */
  readonly strangers: Set<Connection>;
  /** The others, by the account that authenticated first, oldest first. */
  readonly accounts: Map<string, Set<Connection>>;
  readonly addresses: ReturnType<typeof createAddressCounts>;
  readonly offenses: ReturnType<typeof createOffenses>;
  readonly unread: ReturnType<typeof createUnread>;
};

export type ConnectionLimits = ReturnType<typeof createConnectionLimits>;

export function createConnectionLimits(parts: ConnectionLimitParts) {
  const { rules, monotonicMs } = parts;
  const table: Table = {
    ...parts,
    open: new Set(),
    handshaking: new Map(),
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
      server.on('secureConnection', (front: Socket) => {
        const connection = table.handshaking.get(endsOf(front));
        if (connection === undefined) return void front.destroy(); // its client has left
        table.handshaking.delete(connection.ends);
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
}

const remove = ({ open, handshaking, strangers, accounts, addresses, unread }: Table, connection: Connection): void => {
  if (!open.delete(connection)) return;
  if (handshaking.get(connection.ends) === connection) handshaking.delete(connection.ends);
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
  if (isTls) table.handshaking.set(connection.ends, connection);
  strangers.add(connection);
  raw.once('close', () => remove(table, connection));
  if (!addresses.add(connection.address) || offenses.areTooMany(connection.address))
    return void connection.drop('address');
  if (open.size <= authenticatedMax(rules)) return;
  const [oldest] = strangers;
  if (oldest !== undefined && oldest !== connection) oldest.drop('connections');
  else if (open.size > rules.connectionsMax) connection.drop('connections');
};

const authenticatedMax = ({ connectionsMax }: ConnectionRules): number =>
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
    ends: isTls ? endsOf(raw) : '',
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
    answer: undefined,
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

/** A client that takes nothing for this long is gone. With a thousand of them it takes up to 3 s more until that is seen: they are closed within 10 s. */
const stalledMaxMs = 7_000;
/** A client that reads slower than `bytesPerSecondMin` is cut once it has kept us waiting for this long. */
const slowAfterMs = 30_000;
const bytesPerSecondMin = 1_024;

export type StallWatch = {
  /** To be called about once a second. True: the client is gone, or reads too slowly. */
  readonly isStalled: (nowMs: number) => boolean;
  /** When something was sent last, or nothing waited. */
  readonly movedMs: () => number;
};

/** Watches one connection from now on. */
export function createStallWatch(front: Socket, raw: Socket, nowMs: number, patienceMs = stalledMaxMs): StallWatch {
  let movedMs = nowMs;
  let seen = -1;
  let since = { ms: nowMs, gone: bytesGone(front, raw) };
  return {
    isStalled: (now) => {
      const gone = bytesGone(front, raw);
      if (bytesWaiting(front, raw) === 0) since = { ms: now, gone };
      if (since.ms === now || gone !== seen) {
        seen = gone;
        movedMs = now;
      }
      const waitedMs = now - since.ms;
      const isSlow = waitedMs >= slowAfterMs && ((gone - since.gone) / waitedMs) * 1_000 < bytesPerSecondMin;
      return isSlow || now - movedMs >= patienceMs;
    },
    movedMs: () => movedMs,
  };
}

/** Bounds the bytes that wait for clients: over a bound, the connections that moved least recently are cut. */
export function createUnread({ unreadBytesMax, unreadBytesPerAccount }: UnreadRules) {
  const waiting = new Map<Unread, number>();
  const owners = new Map<string, number>();
  let total = 0;
  const set = (one: Unread, bytes: number): void => {
    const by = bytes - (waiting.get(one) ?? 0);
    total += by;
    if (one.owner !== undefined) {
      const owned = (owners.get(one.owner) ?? 0) + by;
      if (owned === 0) owners.delete(one.owner);
      else owners.set(one.owner, owned);
    }
    if (bytes === 0) waiting.delete(one);
    else waiting.set(one, bytes);
  };
  const ofOwner = (owner: string): number => owners.get(owner) ?? 0;
  /** Cuts until the bound holds. First counts again what was sent meanwhile. */
  const cutUntil = (holds: () => boolean, concerned: (one: Unread) => boolean): void => {
    const found = [...waiting.keys()].filter(concerned);
    for (const one of found) set(one, one.waitingBytes());
    if (holds()) return;
    for (const one of found.toSorted((a, b) => a.movedMs() - b.movedMs())) {
      set(one, 0);
      one.cut();
      if (holds()) return;
    }
  };
  return {
    /** Counts what waits for a connection now; cuts connections where that is too much. */
    count: (one: Unread): void => {
      set(one, one.waitingBytes());
      const { owner } = one;
      if (owner !== undefined && ofOwner(owner) > unreadBytesPerAccount)
        cutUntil(
          () => ofOwner(owner) <= unreadBytesPerAccount,
          (other) => other.owner === owner,
        );
      if (total > unreadBytesMax)
        cutUntil(
          () => total <= unreadBytesMax,
          () => true,
        );
    },
    /** Forgets a connection; its owner may change only in between. */
    forget: (one: Unread): void => set(one, 0),
    total: (): number => total,
  };
}

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
export function letProcessEnd(server: Server): void {
  server.unref();
  server.on('connection', (socket: Socket) => socket.unref());
}

/** ECDHE with AEAD alone: forward secrecy, and no padding to attack (D128). */
const ciphers = [
  'TLS_AES_256_GCM_SHA384',
  'TLS_CHACHA20_POLY1305_SHA256',
  'TLS_AES_128_GCM_SHA256',
  'ECDHE+AESGCM',
  'ECDHE+CHACHA20',
].join(':');

export const tlsOptions = {
  minVersion: 'TLSv1.2',
  ciphers,
  honorCipherOrder: true,
  // A client of TLS 1.2 could ask for handshakes without end on one connection.
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
  handshakeTimeout: handshakeMaxMs,
} as const;
