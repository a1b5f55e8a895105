// The engine for several machines: a schema in PostgreSQL that any number of nodes write and read. This file composes the parts, opens and closes.
import { randomInt, randomUUID } from 'node:crypto';
import { createDamageLog, type DamageLog, failingOnDamage } from '../damage.ts';
import { type ReportStore, type Store, StoreError } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import type { WritingTimes } from '../write-state.ts';
import { commandTimes, type PostgresAddress, parseAddress } from './address.ts';
import { createPostgresAdmin, createQuarantine } from './admin.ts';
import { type AppendOptions, appendBatch, confirmRead } from './append.ts';
import { type ChangeFeed, openFeed } from './change-feed.ts';
import { checkDatabase } from './check/check.ts';
import { watchRisks } from './check/risks.ts';
import {
  type DatabaseTarget,
  type Driver,
  listen,
  openPool,
  openWriteConnection,
  type Pool,
  sqlState,
  uniqueViolation,
  type WriteConnection,
} from './connection.ts';
import { createNodeExchange, createTableKeyHolders } from './nodes.ts';
import { createPartitions, type Partitions } from './partitions.ts';
import { createKeyReads, createReportReads, type HistoryReads, scanReports } from './reads.ts';
import { createReplicaReads } from './replicas.ts';
import { createReportWrites, type ReportWrites } from './report-writes.ts';
import { createRetentionRecord, readStats, trimPartition } from './retention.ts';
import { saltMax } from './rows.ts';
import { lineageOfDatabase, lookAtLayout, migratePostgres, type Tables, tablesOf } from './schema.ts';
import { createPostgresUsage } from './usage.ts';

/** Bound of readings that go through everything: scans, counts, a start. */
const longReadMs = 60_000;

/** How a process takes part. */
export type PostgresOptions = {
  readonly tell: (event: StoreEvent) => void;
  /** How many processes of the node divide its connections. */
  readonly share: number;
  /** Addresses of servers that follow the primary, each of one server. */
  readonly replicas: readonly string[];
  /** A command waits longer for the database than a node. */
  readonly isCommand?: boolean;
  readonly writing?: WritingTimes | undefined;
  /** Simulations bring their own. */
  readonly driver?: Driver;
};

/** Opens the store at `postgres://…`. To write, a schema is made where there is none; the migrations of later releases are the operator's. */
export async function openPostgresStore(
  url: string,
  mode: 'read' | 'write',
  options: PostgresOptions,
): Promise<Omit<Store, 'backup'>> {
  const address: DatabaseTarget = {
    ...parseAddress(url, options.isCommand === true ? commandTimes : undefined),
    driver: options.driver,
  };
  const replicas = options.replicas.map((replica) => parseReplica(replica, address));
  let layout = await lookAtLayout(address);
  if (layout === undefined) {
    if (mode === 'read')
      throw new StoreError('store_not_found', `No store in ${address.shown}. Create one with: sealpost store migrate.`);
    await migratePostgres(url);
    layout = await lookAtLayout(address);
  }
  const connections = openConnections(address, replicas, options);
  try {
    return await compose(address, mode, layout?.partitionMs ?? 0, connections, options);
  } catch (error) {
    await connections.close();
    throw error;
  }
}

const parseReplica = (url: string, { schema }: PostgresAddress): PostgresAddress => {
  const address = parseAddress(url);
  const refuse = (what: string) => new StoreError('store_url_invalid', `${address.shown}: ${what}`);
  if (address.schema !== schema)
    throw refuse(`a read store is a replica, so it has the same schema. Add schema=${schema} to the address.`);
  // A server's position is read from that server.
  if (/^[^/]*\/\/[^/?]*,/.test(address.url))
    throw refuse('a read store is one server. List several addresses separated by commas.');
  return address;
};

type Connections = {
  readonly reads: Pool;
  readonly replicas: readonly (Pool & { readonly shown: string })[];
  /** For what may take long. */
  readonly slow: Pool;
  /** For following: never behind readers. */
  readonly watch: Pool;
  /** For the exchange between nodes. */
  readonly news: Pool;
  readonly writer: WriteConnection;
  readonly close: () => Promise<void>;
};

/** Connections of a process besides those for reads: long reads, following, exchange between nodes, writing, notifications. */
const otherConnections = 5;
const connectionsDefault = 10;

const connectionsOfProcess = ({ connections }: PostgresAddress, share: number): number =>
  connections === undefined ? connectionsDefault : Math.floor(connections / share);

/** Connections for reading, so that all of a process are no more than its part of the setting. */
const readConnections = (address: PostgresAddress, share: number): number => {
  const reads = connectionsOfProcess(address, share) - otherConnections;
  if (reads >= 1) return reads;
  const least = (otherConnections + 1) * share;
  const processes = share === 1 ? 'A node' : `A node of ${share} processes`;
  throw new StoreError(
    'store_url_invalid',
    `${address.shown}: the parameter connections is ${address.connections}. ${processes} needs ${least} or more.`,
  );
};

const openConnections = (
  address: DatabaseTarget,
  others: readonly PostgresAddress[],
  { share, tell }: PostgresOptions,
): Connections => {
  const openReads = (server: DatabaseTarget, max: number): Pool => openPool(server, max, server.readMs, { tell });
  const reads = openReads(address, readConnections(address, share));
  const replicas = others.map((server) => ({
    ...openReads(server, Math.max(1, connectionsOfProcess(server, share))),
    shown: server.shown,
  }));
  const slow = openPool(address, 1, longReadMs);
  const watch = openPool(address, 1, Math.max(address.readMs, 5_000));
  const news = openPool(address, 1, address.readMs, { isFleeting: true });
  const writer = openWriteConnection(address);
  return {
    reads,
    replicas,
    slow,
    watch,
    news,
    writer,
    close: async () => {
      await writer.close();
      await Promise.all([reads, ...replicas, slow, watch, news].map((pool) => pool.close()));
    },
  };
};

const compose = async (
  address: DatabaseTarget,
  mode: 'read' | 'write',
  partitionMs: number,
  connections: Connections,
  { tell, writing, isCommand, driver }: PostgresOptions,
): Promise<Omit<Store, 'backup'>> => {
  const { reads, slow, watch, news, writer } = connections;
  const tables = tablesOf(address.schema);
  const partitions = createPartitions(watch.run, tables, partitionMs); // followers wait for it
  await partitions.refresh();
  const damage = createDamageLog((found, total) => tell({ kind: 'damaged', total, ...found }));
  const source = ({ run }: Pool) => ({ run, damage, byKeys: createKeyReads(run, tables, partitions) });
  const feed = await openFeed({ ...source(watch), tables, partitions, others: source(reads), tell });
  const origin = randomUUID();
  const stopListening = listen(address, tables.channel, (told) => {
    // What this process appended, it knows.
    if (told !== origin) feed.look().catch(() => {});
  });
  let closed = false;
  const writable = (): WriteConnection => {
    if (closed) throw new StoreError('store_closed', `The store in ${address.shown} is closed.`);
    if (mode === 'read')
      throw new StoreError('store_read_only', `The store in ${address.shown} is open for reading only.`);
    return writer;
  };
  const reportWrites = createReportWrites(writer, { tell, tables, partitions, ...writing });
  // Simulations have no settings.
  const isWatched = mode === 'write' && isCommand !== true && driver === undefined;
  const stopWatching = isWatched ? watchRisks(watch.run, tell) : undefined;
  const parts = { address, tables, partitions, feed, origin, connections, writable, reportWrites, tell, damage };
  return {
    reports: createReports(parts),
    quarantine: createQuarantine(slow.run, writer, tables, damage), // ten thousand lines may be asked for
    admin: createPostgresAdmin(reads.run, writer, tables, feed, damage),
    usage: createPostgresUsage(reads.run, writer, tables),
    nodes: createNodeExchange(news.run, tables),
    keyHolders: createTableKeyHolders(news.run, tables),
    retention: createRetentionRecord(slow.run, writer, tables, damage),
    damage: damage.list,
    stops: () => [reportWrites.current() ?? []].flat(),
    findDamage: () => checkDatabase(slow.run, tables),
    close: async () => {
      if (closed) return;
      closed = true;
      reportWrites.close();
      stopWatching?.();
      await stopListening();
      await feed.close();
      await connections.close();
    },
  };
};

type Parts = {
  readonly tables: Tables;
  readonly partitions: Partitions;
  readonly feed: ChangeFeed;
  /** Names this process in notifications. */
  readonly origin: string;
  readonly connections: Connections;
  readonly writable: () => WriteConnection;
  readonly reportWrites: ReportWrites;
  readonly tell: (event: StoreEvent) => void;
  readonly damage: DamageLog;
};

const createHistory = ({ tables, partitions, feed, connections, tell, damage }: Parts): HistoryReads => {
  const { reads, replicas } = connections;
  const on = (pool: Pool, log: DamageLog) => ({
    run: pool.run,
    reads: createReportReads(pool, tables, partitions, log, feed.notice),
  });
  const primary = on(reads, damage);
  if (replicas.length === 0) return primary.reads;
  const others = replicas.map((pool) => ({ ...on(pool, failingOnDamage(damage)), shown: pool.shown }));
  return createReplicaReads({ primary, replicas: others, tables, feed, tell });
};

const createReports = (parts: Parts): ReportStore => {
  const { tables, partitions, feed, origin, connections, writable, reportWrites, tell } = parts;
  const { reads, slow } = connections;
  return {
    ...createHistory(parts),
    append: async (batch) => {
      writable();
      if (batch.length === 0) return [];
      const began = performance.now();
      const appendWith = (options: AppendOptions) =>
        reportWrites.write(batch, (run) => appendBatch(run, tables, partitions.partitionOf, batch, options));
      const mine = { origin, salt: randomInt(saltMax) };
      const { outcomes, stored, present, place } = await appendWith(mine).catch((error: unknown) => {
        if (sqlState(error) === uniqueViolation) return appendWith({ ...mine, comparesAll: true });
        throw error;
      });
      tell({ kind: 'committed', seconds: (performance.now() - began) / 1_000 });
      feed.learn(present);
      if (place !== undefined) feed.appended(place, stored);
      return outcomes;
    },
    confirm: () => writable().write((run) => confirmRead(run, tables)),
    latest: feed.latest,
    newestMs: (feedId) => feed.latest(feedId)?.observationsMs,
    appendedAfter: feed.appendedAfter,
    position: async () => {
      const [row] = await reads.run<{ value: number }>(`SELECT value FROM ${tables.counters} WHERE name = 'position'`);
      return row?.value ?? 0;
    },
    lineage: () => lineageOfDatabase(reads.run, tables),
    onAppended: feed.onAppended,
    checkAppended: () => {}, // every process follows the database itself, which notifies it
    trim: async (retention) => {
      const trimmed = await trimPartition(writable(), tables, partitions.partitionOf, retention);
      if (trimmed.more) await feed.look();
      return trimmed;
    },
    scan: (cursor, limit) => scanReports(slow.run, tables, cursor, limit),
    stats: () => readStats(slow.run, tables),
  };
};
