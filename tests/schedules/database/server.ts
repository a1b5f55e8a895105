// One server of a simulated PostgreSQL: sessions, transactions, time limits, commits that wait for a standby, notifications, crashes.
import type { Event, Executor } from '../executor.ts';
import { createLocks, type Holder, type Locks } from './locks.ts';
import { type Execution, execute, type Parameters, SqlError } from './statements.ts';
import { applyWrites, type Committed, createView, type Row, type View, type Write } from './tables.ts';

export type Reply =
  | { readonly kind: 'rows'; readonly rows: readonly Row[]; readonly warning?: string }
  | { readonly kind: 'error'; readonly code: string; readonly message: string }
  | { readonly kind: 'notification'; readonly channel: string; readonly payload: string }
  | { readonly kind: 'closed' };

export type SessionOptions = {
  readonly statementMs: number;
  /** `synchronous_commit = off`. */
  readonly isFleeting: boolean;
  readonly reply: (reply: Reply) => void;
};

/** A connection on the server's side. */
export type Session = {
  readonly id: number;
  /** Statements run one after the other, in the order of their arrival. */
  readonly receive: (text: string, parameters: Parameters) => void;
  /** The client is gone; what it sent before is still done. */
  readonly close: () => void;
};

/** A commit in the log: its number, and what it changes. */
export type LogRecord = { readonly number: number; readonly writes: readonly Write[] };

/** What happens to statements, for those who compare them. */
export type TraceEntry =
  | {
      readonly kind: 'began';
      readonly session: number;
      readonly text: string;
      readonly parameters: Parameters;
      readonly nowMs: number;
    }
  | { readonly kind: 'blocked'; readonly session: number; readonly by: number | undefined }
  | { readonly kind: 'ended' | 'notified'; readonly session: number; readonly reply: Reply };
export type Trace = (entry: TraceEntry) => void;

export type ServerOptions = {
  readonly executor: Executor;
  readonly committed: Committed;
  /** Is a commit acknowledged only when a standby has it? */
  readonly isSynchronous: boolean;
  /** A commit was written to the log. */
  readonly logged: (record: LogRecord) => void;
  /** A commit became visible. */
  readonly shown: (record: LogRecord) => void;
  readonly trace?: Trace | undefined;
};

export type Server = {
  readonly open: (options: SessionOptions) => Session | undefined;
  /** The standby has everything up to this commit. */
  readonly replicated: (number: number) => void;
  readonly crash: () => void;
  readonly restart: () => void;
  /** Makes it wait for no standby: there is none any more. */
  readonly detach: () => void;
  readonly isUp: () => boolean;
  readonly committed: Committed;
};

type Transaction = Holder & {
  readonly session: number;
  readonly view: View;
  readonly notices: Map<string, readonly [string, string]>;
  failed: boolean;
};

type Backend = {
  readonly session: Session;
  readonly options: SessionOptions;
  readonly channels: Set<string>;
  readonly inbox: (readonly [string, Parameters])[];
  transaction: Transaction | undefined;
  /** Undefined between statements. */
  running: Execution | undefined;
  isCommitting: boolean;
  isClosing: boolean;
  limit: Event | undefined;
};

type Waiting = { readonly record: LogRecord; readonly finish: (warning?: string) => void };

const deadlockMs = 1_000;
const notReplicated = 'canceling wait for synchronous replication due to user request';

export const createServer = (options: ServerOptions): Server => {
  const { executor, committed, trace } = options;
  let locks: Locks = createLocks();
  let backends = new Set<Backend>();
  let waiting: Waiting[] = [];
  let [isUp, isSynchronous] = [true, options.isSynchronous];
  let [sessions, commits, replicatedTo] = [0, 0, 0];
  const later = (ms: number, act: () => void): Event => executor.after(ms, act, { isQuiet: true });

  const stopTimer = ({ limit }: Backend): void => {
    if (limit !== undefined) limit.cancelled = true;
  };
  const reply = (backend: Backend, answer: Reply): void => {
    stopTimer(backend);
    trace?.({ kind: 'ended', session: backend.session.id, reply: answer });
    if (!backend.isClosing) backend.options.reply(answer);
  };
  const begin = ({ session }: Backend): Transaction => ({
    session: session.id,
    view: createView(() => committed),
    notices: new Map(),
    held: new Set(),
    waitsFor: undefined,
    failed: false,
  });
  const show = (record: LogRecord, transaction: Transaction): void => {
    applyWrites(committed, record.writes);
    locks.release(transaction);
    options.shown(record);
    for (const [channel, payload] of transaction.notices.values())
      for (const { channels, session, options: listener } of backends) {
        if (!channels.has(channel)) continue;
        const reply = { kind: 'notification', channel, payload } as const;
        trace?.({ kind: 'notified', session: session.id, reply });
        listener.reply(reply);
      }
  };
  /** Logs what was written; it becomes visible when it is as safe as the session asks for. */
  const commit = (backend: Backend, transaction: Transaction, rows: readonly Row[]): void => {
    const writes = transaction.view.writes();
    const durable = writes.filter(({ table }) => table !== 'nodeNews');
    const record = { number: durable.length === 0 ? 0 : ++commits, writes };
    if (durable.length > 0) options.logged({ ...record, writes: durable });
    const finish = (warning?: string): void => {
      backend.isCommitting = false;
      waiting = waiting.filter((one) => one.record !== record);
      show(record, transaction);
      reply(backend, { kind: 'rows', rows, ...(warning !== undefined && { warning }) });
      proceed(backend);
    };
    const isSafe =
      durable.length === 0 || backend.options.isFleeting || !isSynchronous || record.number <= replicatedTo;
    if (isSafe) {
      finish();
      return;
    }
    backend.isCommitting = true;
    waiting.push({ record, finish });
    backend.limit = later(backend.options.statementMs, () => finish(notReplicated));
  };
  const fail = (backend: Backend, error: SqlError): void => {
    const { transaction } = backend;
    if (transaction !== undefined) {
      transaction.failed = true;
    }
    backend.running = undefined;
    if (transaction !== undefined) locks.release(transaction); // before its client rolls back
    reply(backend, { kind: 'error', code: error.code, message: error.message });
    proceed(backend);
  };
  const wait = (backend: Backend, transaction: Transaction): void => {
    const by = locks.ownerOf(transaction) as Transaction | undefined; // only transactions take locks
    trace?.({ kind: 'blocked', session: backend.session.id, by: by?.session });
    const execution = backend.running;
    const isStill = () => backend.running === execution && transaction.waitsFor !== undefined && isUp;
    const giveUp = (code: string, message: string): void => {
      if (backend.transaction !== transaction) locks.release(transaction);
      fail(backend, new SqlError(code, message));
    };
    backend.limit = later(backend.options.statementMs, () => {
      if (isStill()) giveUp('57014', 'canceling statement due to statement timeout');
    });
    later(deadlockMs, () => {
      if (isStill() && locks.isDeadlocked(transaction)) giveUp('40P01', 'deadlock detected');
    });
  };
  const advance = (backend: Backend, transaction: Transaction, implicit: boolean): void => {
    const { running } = backend;
    if (running === undefined) return;
    try {
      for (let step = running.next(); ; step = running.next()) {
        if (step.done) {
          backend.running = undefined;
          if (implicit) {
            commit(backend, transaction, step.value);
            return;
          }
          reply(backend, { kind: 'rows', rows: step.value });
          return;
        }
        const granted = (): void => {
          stopTimer(backend);
          advance(backend, transaction, implicit);
          proceed(backend);
        };
        if (!locks.take(step.value, transaction, granted)) {
          wait(backend, transaction);
          return;
        }
      }
    } catch (error) {
      if (!(error instanceof SqlError)) throw error;
      if (implicit) locks.release(transaction);
      fail(backend, error);
    }
  };
  const roll = (backend: Backend): void => {
    const { transaction } = backend;
    backend.transaction = undefined;
    if (transaction !== undefined) locks.release(transaction);
  };
  const start = (backend: Backend, text: string, parameters: Parameters): void => {
    stopTimer(backend); // it is idle no longer
    trace?.({ kind: 'began', session: backend.session.id, text, parameters, nowMs: executor.nowMs() });
    const done = (): void => reply(backend, { kind: 'rows', rows: [] });
    const { transaction } = backend;
    if (text.startsWith('begin')) {
      backend.transaction = begin(backend);
      done();
      return;
    }
    if (text.startsWith('listen ')) {
      backend.channels.add(text.slice('listen '.length));
      done();
      return;
    }
    if (text === 'rollback' || (text === 'commit' && transaction?.failed)) {
      roll(backend);
      done();
      return;
    }
    if (text === 'commit' && transaction !== undefined) {
      backend.transaction = undefined;
      commit(backend, transaction, []);
      return;
    }
    if (transaction?.failed) {
      fail(backend, new SqlError('25P02', 'current transaction is aborted'));
      return;
    }
    const within = transaction ?? begin(backend);
    const notify = (channel: string, payload: string) =>
      void within.notices.set(`${channel} ${payload}`, [channel, payload]);
    backend.running = execute({ view: within.view, nowMs: executor.nowMs(), notify }, text, parameters);
    advance(backend, within, transaction === undefined);
  };
  const proceed = (backend: Backend): void => {
    const isIdle = () => backend.running === undefined && !backend.isCommitting && backends.has(backend);
    while (isIdle() && backend.inbox.length > 0) {
      const [text, parameters] = backend.inbox.shift() as readonly [string, Parameters]; // there is one
      start(backend, text, parameters);
    }
    if (!isIdle()) return;
    if (backend.isClosing) {
      roll(backend);
      backends.delete(backend);
    } else if (backend.transaction !== undefined) watchIdle(backend, backend.transaction);
  };
  /** `idle_in_transaction_session_timeout`: a client that is gone without a word holds its locks no longer. */
  const watchIdle = (backend: Backend, transaction: Transaction): void => {
    stopTimer(backend);
    backend.limit = later(backend.options.statementMs + 1_000, () => {
      if (backend.transaction !== transaction) return;
      backend.options.reply({ kind: 'closed' });
      roll(backend);
      backends.delete(backend);
    });
  };
  const openSession = (wanted: SessionOptions): Session => {
    const session: Session = {
      id: sessions++,
      receive: (text, parameters) => {
        if (!backends.has(backend)) return;
        backend.inbox.push([text, parameters]);
        proceed(backend);
      },
      close: () => {
        backend.isClosing = true;
        proceed(backend);
      },
    };
    const backend: Backend = {
      session,
      options: wanted,
      channels: new Set(),
      inbox: [],
      transaction: undefined,
      running: undefined,
      isCommitting: false,
      isClosing: false,
      limit: undefined,
    };
    backends.add(backend);
    return session;
  };
  return {
    committed,
    isUp: () => isUp,
    open: (wanted) => (isUp ? openSession(wanted) : undefined),
    replicated: (number) => {
      replicatedTo = Math.max(replicatedTo, number);
      if (!isUp) return;
      for (const { record, finish } of [...waiting]) if (record.number <= replicatedTo) finish();
    },
    detach: () => {
      isSynchronous = false;
      if (isUp) for (const { finish } of [...waiting]) finish();
    },
    crash: () => {
      isUp = false;
      for (const backend of backends) {
        stopTimer(backend);
        // What its timers find later is over: they would release locks that others have by then.
        backend.transaction = undefined;
        backend.running = undefined;
        backend.options.reply({ kind: 'closed' });
      }
      backends = new Set();
      locks = createLocks();
      committed.nodeNews.clear(); // an unlogged table
    },
    restart: () => {
      isUp = true;
      // What is in the log is there again, also where a commit was still waiting for the standby.
      for (const { record } of waiting) {
        applyWrites(committed, record.writes);
        options.shown(record);
      }
      waiting = [];
    },
  };
};
