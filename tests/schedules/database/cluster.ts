// A simulated PostgreSQL with or without a standby: what the log carries over, who takes over, and what that loses.
import type { Executor } from '../executor.ts';
import { createServer, type LogRecord, type Server, type Session, type SessionOptions, type Trace } from './server.ts';
import { applyWrites, type Committed, copyCommitted } from './tables.ts';

/** `single`: no standby. `async`: one that commits do not wait for. */
export type Replication = 'single' | 'sync' | 'async';

export type ClusterOptions = {
  readonly executor: Executor;
  readonly start: Committed;
  readonly replication: Replication;
  /** How long a message takes between the servers. */
  readonly latencyMs: () => number;
  readonly trace?: Trace | undefined;
};

export type Cluster = {
  /** A session on the server that a client finds; undefined where it finds none. `choice` is for the time when two take themselves for the primary. */
  readonly open: (options: SessionOptions, choice: number) => Session | undefined;
  readonly crash: () => void;
  readonly restart: () => void;
  /** Messages between the servers are held back until then. */
  readonly stall: (untilMs: number) => void;
  /** Promotes the standby. The old primary is down, or is cut off from it and knows nothing. */
  readonly failOver: (isOldAlive: boolean) => void;
  /** Ends an old primary that was left alive. */
  readonly retire: () => void;
  readonly hasStandby: () => boolean;
  readonly committed: () => Committed;
  /** Has a commit been visible that the promoted server does not have? */
  readonly hasLostVisible: () => boolean;
  /** Was the old primary left alive, so that clients may read what is no longer true? */
  readonly hadTwoPrimaries: () => boolean;
};

export const createCluster = ({ executor, start, replication, latencyMs, trace }: ClusterOptions): Cluster => {
  const log: LogRecord[] = [];
  const base = copyCommitted(start);
  let received = 0;
  let stalledUntilMs = 0;
  let [sentAtMs, ackedAtMs] = [0, 0];
  let hasStandby = replication !== 'single';
  let shownTo = 0;
  /** The last commit that the promoted server has. */
  let forkedAt: number | undefined;
  let [hasLost, hadTwo] = [false, false];
  let old: Server | undefined;
  const later = (atMs: number, act: () => void): void => void executor.at(atMs, act, { isQuiet: true });
  const send = (server: Server, { number }: LogRecord): void => {
    sentAtMs = Math.max(sentAtMs, stalledUntilMs, executor.nowMs() + latencyMs());
    later(sentAtMs, () => {
      if (!hasStandby || !server.isUp()) return;
      received = number;
      ackedAtMs = Math.max(ackedAtMs, stalledUntilMs, executor.nowMs() + latencyMs());
      later(ackedAtMs, () => hasStandby && server.replicated(number));
    });
  };
  const primaryOf = (committed: Committed, isFirst: boolean): Server => {
    const server: Server = createServer({
      executor,
      committed,
      isSynchronous: isFirst && replication === 'sync',
      logged: (record) => {
        if (!isFirst) return;
        log.push(record);
        if (hasStandby) send(server, record);
      },
      shown: ({ number }) => {
        if (!isFirst) return;
        shownTo = Math.max(shownTo, number);
        if (forkedAt !== undefined && number > forkedAt) hasLost = true;
      },
      trace,
    });
    return server;
  };
  let primary = primaryOf(copyCommitted(start), true);
  return {
    open: (options, choice) => (old?.isUp() && choice % 2 === 1 ? old : primary).open(options),
    crash: () => primary.crash(),
    restart: () => {
      if (primary.isUp()) return;
      primary.restart();
      const [server, missing] = [primary, log.slice(received)];
      if (hasStandby) for (const record of missing) send(server, record); // the standby connects again
    },
    stall: (untilMs) => {
      stalledUntilMs = untilMs;
    },
    failOver: (isOldAlive) => {
      if (!hasStandby) return;
      hasStandby = false;
      forkedAt = received;
      if (shownTo > received) hasLost = true;
      old = primary;
      hadTwo = isOldAlive;
      if (!isOldAlive) old.crash();
      const committed = copyCommitted(base);
      for (const record of log.slice(0, received)) applyWrites(committed, record.writes);
      primary = primaryOf(committed, false);
    },
    retire: () => {
      if (old?.isUp()) old.crash();
    },
    hasStandby: () => hasStandby,
    committed: () => primary.committed,
    hasLostVisible: () => hasLost,
    hadTwoPrimaries: () => hadTwo,
  };
};
