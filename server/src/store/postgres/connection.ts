// Connects to PostgreSQL: the only file that knows the driver. Everything has its own deadline in this process, because a database that is unavailable or
// stuck does not keep its own time-outs (D80).

import { backoffMs } from '@sealpost/protocol';
import postgres from 'postgres';
import { timedOut, within } from '../../runtime/deadline.ts';
import { StoreError } from '../store.ts';
import type { StatementFailure, StoreEvent } from '../store-event.ts';
import type { PostgresAddress } from './address.ts';
import { createDatabaseSockets, createHostChoice, type HostChoice } from './sockets.ts';

export type Parameter = string | number | Uint8Array;

/** Runs one statement, prepared once per connection. On one connection, statements run in the order of the calls. */
export type Run = <Row>(text: string, parameters?: readonly Parameter[]) => Promise<readonly Row[]>;

/** As `Run`, with the values of each row as the database writes them. */
export type RunRaw = <Row>(text: string, parameters?: readonly Parameter[]) => Promise<readonly Row[]>;

/** Statements that wait or run per connection; more are rejected at once. */
const waitingPerConnection = 50;

/** However long a statement may take, a server that cannot be reached is given up, and a transaction that does nothing frees its locks. */
const [connectMaxMs, idleMaxMs] = [10_000, 10_000];

type Client = postgres.Sql<{ bigint: number; bytea: Uint8Array }>;
type Types = { bigint: postgres.PostgresType<number>; bytea: postgres.PostgresType<Uint8Array> };

/** What opens clients. */
export type Driver = typeof postgres;

/** A database, and the driver to reach it with; simulations bring their own. */
export type DatabaseTarget = PostgresAddress & { readonly driver?: Driver | undefined };

type ClientOptions = {
  /** Handed on from a client to the one that takes its place. */
  readonly hosts: HostChoice;
  readonly max: number;
  readonly statementMs: number;
  /** Is what is written allowed to be lost when the database crashes? Then no commit waits for disk or standby. */
  readonly isFleeting?: boolean;
  readonly onNotice?: (notice: { readonly [field: string]: string }) => void;
  /** A connection that was open has ended. */
  readonly onClose?: () => void;
};

/** Bytes as the database writes them: in hex, or as text with escapes where `bytea_output` is set so for the user or the database. */
export function parseBytea(text: string): Buffer {
  if (text.startsWith('\\x')) return Buffer.from(text.slice(2), 'hex');
  const plain = text.replaceAll(/\\(?:(\\)|([0-7]{3}))/g, (_, backslash: string | undefined, octal: string) =>
    backslash === undefined ? String.fromCharCode(Number.parseInt(octal, 8)) : backslash,
  );
  return Buffer.from(plain, 'latin1');
}

const bytesToHex = (bytes: Uint8Array): string => `\\x${Buffer.from(bytes).toString('hex')}`;

const types: Types = {
  // Positions and milliseconds stay far below 2^53.
  bigint: { to: 20, from: [20], parse: Number, serialize: String },
  // The driver reads hex only.
  bytea: { to: 17, from: [17], parse: parseBytea, serialize: bytesToHex },
};

const openClient = (address: DatabaseTarget, options: ClientOptions): Client => {
  const { driver = postgres } = address;
  const { hosts, max, statementMs, isFleeting, onNotice, onClose } = options;
  const sockets = createDatabaseSockets(hosts);
  const client = driver<Types>(address.url, {
    max,
    ...({ socket: sockets.open } as object), // the driver's types know nothing of it
    // Statements name their types, which saves a round trip.
    fetch_types: false,
    idle_timeout: 60,
    connect_timeout: Math.max(1, Math.ceil(Math.min(address.readMs, connectMaxMs) / 1_000)),
    backoff: (tries) => backoffMs(tries, 50, 1_000) / 1_000,
    onnotice: onNotice ?? (() => {}),
    onclose: onClose ?? (() => {}),
    types,
    connection: {
      application_name: 'sealpost',
      statement_timeout: statementMs,
      lock_timeout: statementMs,
      idle_in_transaction_session_timeout: Math.min(statementMs, idleMaxMs) + 1_000,
      ...(isFleeting && { synchronous_commit: 'off' }),
    },
  });
  const { end } = client;
  return Object.assign(client, { end: (options?: { timeout?: number }) => end(options).finally(sockets.destroy) });
};

const runOn =
  (client: postgres.Sql | postgres.TransactionSql, isRaw = false): Run =>
  // The driver's rows are plain objects, or lists of buffers; which ones is known by who wrote the statement.
  <Row>(text: string, parameters: readonly Parameter[] = []) => {
    const query = client.unsafe(text, [...parameters], { prepare: true });
    return (isRaw ? query.raw() : query).execute() as unknown as Promise<readonly Row[]>; // rows as the caller names them
  };

const unavailable = (what: string, cause?: unknown) =>
  new StoreError('store_unavailable', `The database ${what}. Retry shortly.`, { cause });

/** Classes of SQLSTATE that pass: connection, resources, operator, locks, roll-backs; and a server that is only a standby. */
const passing = /^(?:08|53|55|57|40)|^25006$/;
const diskFull = '53100';
const missingPrivilege = '42501';
const privilegeAdvice = 'The user must own its schema, or be allowed to create one in the database.';
export const uniqueViolation = '23505';
const addressAdvice = 'Check user, password, database and parameters in the address.';

/** The code of an error of the database, for those who know what to do about one. */
export const sqlState = (error: unknown): string | undefined =>
  error instanceof postgres.PostgresError ? error.code : undefined;

/** Is it the end of a connection, or its rejection? */
const isFatal = (error: unknown): boolean => error instanceof postgres.PostgresError && error.severity === 'FATAL';

/** An operating failure by its name; any other error as it is. */
const toStoreError = (error: unknown): unknown => {
  if (error instanceof StoreError || !(error instanceof Error)) return error;
  const state = sqlState(error);
  if (state === diskFull)
    return new StoreError('store_disk_full', 'The disk of the database is full.', { cause: error });
  if (state !== undefined && passing.test(state)) return unavailable(`rejects statements: ${error.message}`, error);
  const advice = state === missingPrivilege ? privilegeAdvice : isFatal(error) ? addressAdvice : undefined;
  if (advice !== undefined)
    return new StoreError('store_unavailable', `The database rejects this: ${error.message}. ${advice}`, {
      cause: error,
    });
  if (state !== undefined) return error;
  const code = networkCode(error);
  return code === undefined ? error : unavailable(`is unavailable: ${code}`, error);
};

/** What the driver and the network throw has a code in capitals, CONNECTION_CLOSED or ECONNREFUSED; undefined of any other error. */
const networkCode = (error: unknown): string | undefined => {
  const code = (error as NodeJS.ErrnoException | undefined)?.code; // whatever it is, it has one or not
  return typeof code === 'string' && /^[A-Z][A-Z_]+$/.test(code) ? code : undefined;
};

/** Rejects with the error, unless the connection is gone: then the driver would write ROLLBACK to it, which ends the process. The driver notices the end by itself. */
const failUnlessGone = (error: unknown): Promise<never> =>
  networkCode(error) === undefined ? Promise.reject(error) : new Promise(() => {});

export type PoolOptions = Pick<ClientOptions, 'isFleeting'> & { readonly tell?: (event: StoreEvent) => void };

export type Pool = { readonly run: Run; readonly runRaw: RunRaw; readonly close: () => Promise<void> };

/** One connection of a pool, with a client of its own: the driver replaces no connection, only a client can be ended. */
type PoolConnection = {
  readonly client: Client;
  /** Statements without an answer. */
  waiting: number;
  /** When the last one ended, or the first one was sent. */
  quietSince: number;
  /** Is it open, as far as is known? */
  isOpen: boolean;
};

/** The database ends a statement at the bound too: its error has so much longer to arrive, before the connection counts as silent. */
const graceMaxMs = 1_000;

const createPoolConnections = (open: (onClose: () => void) => Client, max: number, boundMs: number) => {
  const openOne = (): PoolConnection => {
    const client = open(() => {
      connection.isOpen = false;
    });
    const connection = { client, waiting: 0, quietSince: 0, isOpen: false };
    return connection;
  };
  let connections = Array.from({ length: max }, openOne);
  const silentMs = boundMs + Math.min(boundMs, graceMaxMs);
  const hasBeenQuiet = ({ waiting, quietSince }: PoolConnection, ms: number): boolean =>
    waiting > 0 && performance.now() - quietSince >= ms;
  const replace = (isStuck: (connection: PoolConnection) => boolean): void => {
    const stuck = connections.filter(isStuck);
    connections = connections.map((connection) => (stuck.includes(connection) ? openOne() : connection));
    for (const { client } of stuck) client.end({ timeout: 0 }).catch(() => {}); // not awaited
  };
  const isSilent = (connection: PoolConnection): boolean => hasBeenQuiet(connection, silentMs);
  return {
    /** The one with the fewest statements waiting: rather one that is open, and one without an answer within the bound only if all are. */
    next: (): PoolConnection => {
      // Not at once: answers that arrived while this process was blocked are processed before `setImmediate`.
      if (connections.some(isSilent)) setImmediate(() => replace(isSilent));
      const rank = (connection: PoolConnection): number =>
        connection.waiting +
        (connection.isOpen ? 0 : 0.5) +
        (hasBeenQuiet(connection, boundMs) ? max * waitingPerConnection : 0);
      return connections.reduce((best, other) => (rank(other) < rank(best) ? other : best));
    },
    replaceAll: () => replace(() => true),
    close: () => Promise.all(connections.map(({ client }) => client.end({ timeout: 1 }))),
  };
};

/**
 * A pool for single statements. A statement without an answer in time fails; if its connection was open, and no other statement had an answer either, all
 * connections are replaced. One that stays silent while others answer, or that cannot be opened, is replaced alone, at the next statement.
 */
export function openPool(
  address: DatabaseTarget,
  max: number,
  boundMs: number,
  { isFleeting = false, tell = () => {} }: PoolOptions = {},
): Pool {
  const hosts = createHostChoice();
  const open = (onClose: () => void) =>
    openClient(address, { hosts, max: 1, statementMs: boundMs, isFleeting, onClose });
  const connections = createPoolConnections(open, max, boundMs);
  let waiting = 0;
  let answeredAt = performance.now();
  let closed = false;
  const renew = (): void => {
    if (closed || performance.now() - answeredAt < boundMs) return;
    answeredAt = performance.now();
    connections.replaceAll();
  };
  const failed = (reason: StatementFailure, error: Error): Error => {
    tell({ kind: 'statementFailed', reason });
    return error;
  };
  const began = (connection: PoolConnection): void => {
    if (connection.waiting === 0) connection.quietSince = performance.now();
    connection.waiting += 1;
    waiting += 1;
    tell({ kind: 'statements', change: 1 });
  };
  const ended = (connection: PoolConnection, error?: unknown): void => {
    const now = performance.now();
    const isAnswered = error === undefined || sqlState(error) !== undefined;
    if (isAnswered) answeredAt = now;
    connection.waiting -= 1;
    connection.quietSince = now;
    connection.isOpen = isAnswered && !isFatal(error);
    waiting -= 1;
    tell({ kind: 'statements', change: -1 });
  };
  const send = async <Row>(
    isRaw: boolean,
    text: string,
    parameters?: readonly Parameter[],
  ): Promise<readonly Row[]> => {
    if (closed) throw new StoreError('store_closed', 'The store is closed.');
    const connection = connections.next();
    if (waiting >= max * waitingPerConnection)
      throw failed('exhausted', unavailable(`has ${waiting} reads waiting already`));
    const { isOpen } = connection;
    began(connection);
    const asked = runOn(connection.client, isRaw)<Row>(text, parameters).then(
      (rows) => {
        ended(connection);
        return rows;
      },
      (error: unknown) => {
        ended(connection, error);
        throw toStoreError(error);
      },
    );
    const rows = await within(boundMs, asked).catch((error: unknown) => {
      throw error instanceof StoreError ? failed('away', error) : error;
    });
    if (rows !== timedOut) return rows;
    asked.catch(() => {});
    if (isOpen) renew(); // one that cannot be opened says nothing about the others
    throw failed('late', unavailable(`did not answer within ${boundMs} ms`));
  };
  return {
    run: (text, parameters) => send(false, text, parameters),
    runRaw: (text, parameters) => send(true, text, parameters),
    close: async () => {
      closed = true;
      await connections.close();
    },
  };
}

/** One transaction after the other on one connection, each acknowledged only when the database is sure of it. */
export type WriteConnection = {
  readonly write: <T>(act: (run: Run) => Promise<T>) => Promise<T>;
  readonly close: () => Promise<void>;
};

const outcomeUnknown = (what: string, cause?: unknown) =>
  new StoreError(
    'store_outcome_unknown',
    `It is unknown whether this was stored: ${what}. Send it again: duplicates are recognized.`,
    { cause },
  );

/**
 * Where commits are asynchronous, a crash would lose what was acknowledged; where warnings are not sent, a fail-over, since a cancelled wait for a standby is
 * only a warning (D244). Sent with the first statement, it costs no round trip.
 */
const commitSafely = `SELECT set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true),
  set_config('client_min_messages', 'warning', true)`;

type Job = { state: 'queued' | 'running' | 'committing' | 'done' };

export function openWriteConnection(address: DatabaseTarget): WriteConnection {
  const boundMs = address.writeMs;
  let warnings: string[] = [];
  // A commit that was not replicated as configured succeeds with a mere warning, and nothing else warns then.
  const onNotice = ({ severity, message = '' }: { readonly [field: string]: string }): void => {
    if (severity === 'WARNING') warnings.push(message);
  };
  const hosts = createHostChoice();
  const open = () => openClient(address, { hosts, max: 1, statementMs: Math.ceil(boundMs * 0.8), onNotice });
  let client = open();
  let last: Promise<unknown> = Promise.resolve();
  let closed = false;
  const renew = (): void => {
    const stuck = client;
    client = open();
    stuck.end({ timeout: 0 }).catch(() => {}); // not awaited
  };
  const transact = async <T>(job: Job, act: (run: Run) => Promise<T>): Promise<T> => {
    job.state = 'running';
    const isCommitting = () => job.state === 'committing';
    try {
      // Whatever the database's default is: under a lock each statement must see what its last holder committed (D149).
      const result = await client.begin('isolation level read committed', async (transaction) => {
        const run = runOn(transaction);
        const [, value] = await Promise.all([run(commitSafely), act(run)]).catch(failUnlessGone);
        // Given up meanwhile: what throws here is rolled back.
        if (job.state === 'done') throw unavailable(`did not complete this within ${boundMs} ms`);
        job.state = 'committing';
        warnings = []; // those before are of something else, such as the collation of the database at every connect
        return { value };
      });
      if (warnings.length > 0) throw outcomeUnknown(warnings.join('; '));
      return (result as { value: T }).value; // the driver's type unwraps promises
    } catch (error) {
      if (error instanceof StoreError) throw error;
      // A server that became a standby: the next connection may find the new primary. One that ended may hold half of a statement.
      if (sqlState(error) === '25006' || networkCode(error) !== undefined) renew();
      if (isCommitting()) throw outcomeUnknown(error instanceof Error ? error.message : String(error), error);
      throw toStoreError(error);
    }
  };
  const write = async <T>(act: (run: Run) => Promise<T>): Promise<T> => {
    if (closed) throw new StoreError('store_closed', 'The store is closed.');
    const job: Job = { state: 'queued' };
    const turn = last.then(() => (job.state === 'done' ? undefined : transact(job, act)));
    const bounded = within(boundMs, turn);
    last = bounded.catch(() => {});
    const value = await bounded;
    const reached = job.state;
    job.state = 'done';
    if (value !== timedOut) return value as T; // undefined only for a job that was given up below
    turn.catch(() => {});
    if (reached !== 'queued') renew();
    if (reached === 'committing') throw outcomeUnknown(`the database did not confirm it within ${boundMs} ms`);
    throw unavailable(`did not complete this within ${boundMs} ms`);
  };
  return {
    write,
    close: async () => {
      closed = true;
      await last;
      await client.end({ timeout: 1 });
    },
  };
}

/** Listens to a channel on its own connection, and reconnects when it breaks. Calls `wake` with what notifications say, and after reconnecting. */
export function listen(address: DatabaseTarget, channel: string, wake: (told?: string) => void): () => Promise<void> {
  const client = openClient(address, { hosts: createHostChoice(), max: 1, statementMs: address.readMs });
  // Callers poll too: without the channel they are only slower.
  client.listen(channel, wake, () => wake()).catch(() => {});
  return () => client.end({ timeout: 1 });
}
