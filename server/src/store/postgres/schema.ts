// The PostgreSQL schema: its statements, its version, locks. It uses plain features only, so that compatible databases work. Reports and minutes are
// partitioned by time (D81).

import { createHash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { dayMs } from '@sealpost/protocol';
import { type Lineage, StoreError } from '../store.ts';
import { parseAddress } from './address.ts';
import { type DatabaseTarget, openPool, openWriteConnection, type Run, sqlState } from './connection.ts';

/** Names of one store's objects; every statement is made from them. */
export type Tables = {
  readonly schema: string;
  readonly reports: string;
  readonly candles: string;
  readonly heads: string;
  readonly partitions: string;
  readonly appended: string;
  readonly counters: string;
  readonly records: string;
  readonly audit: string;
  readonly quarantine: string;
  readonly usage: string;
  readonly secretUses: string;
  readonly nodeNews: string;
  readonly layout: string;
  readonly retention: string;
  readonly lineage: string;
  /** Notified in every transaction that other nodes must see. */
  readonly channel: string;
};

/** Schemas are quoted, since words of the language may be names of theirs. */
const quoted = (schema: string): string => `"${schema}"`;

export const tablesOf = (schema: string): Tables => ({
  schema,
  reports: `${quoted(schema)}.reports`,
  candles: `${quoted(schema)}.candles`,
  heads: `${quoted(schema)}.heads`,
  partitions: `${quoted(schema)}.partitions`,
  appended: `${quoted(schema)}.appended`,
  counters: `${quoted(schema)}.counters`,
  records: `${quoted(schema)}.records`,
  audit: `${quoted(schema)}.audit`,
  quarantine: `${quoted(schema)}.quarantine`,
  usage: `${quoted(schema)}.usage`,
  secretUses: `${quoted(schema)}.secret_uses`,
  nodeNews: `${quoted(schema)}.node_news`,
  layout: `${quoted(schema)}.layout`,
  retention: `${quoted(schema)}.retention`,
  lineage: `${quoted(schema)}.lineage`,
  channel: `${schema}_changed`,
});

/** What must not happen twice at once, each with its own lock. */
const locks = { migrate: 1, reports: 2, admin: 3 };

/** Takes a lock until the transaction ends. A separate statement: those after it see what the last holder committed. */
export async function takeLock(run: Run, { schema }: Tables, name: keyof typeof locks): Promise<void> {
  const family = 0x5ea10000 + locks[name];
  await run('SELECT pg_advisory_xact_lock($1::int, $2::int)', [family, crc32(schema) | 0]);
}

/** The counters of a store. */
export const counterNames: readonly string[] = ['position', 'admin', 'trimmed', 'confirmed'];

const epochBytes = 6;
const lineageKeyBytes = 16;
/** Where the one row of the lineage is as it was written. */
export const validLineage = `octet_length(epoch) = ${epochBytes} AND octet_length(key) = ${lineageKeyBytes}`;
const randomLineage = (): Lineage => ({ epoch: randomBytes(epochBytes), key: randomBytes(lineageKeyBytes) });

/** Raised when the statements change: a store of another version is rejected. */
export const schemaVersion = 5;

/** Of one width of partitions. Report rows are two thousand bytes at most with 20 signatures, so they stay in line, uncompressed (D286). */
const statementsOf = (t: Tables, partitionMs: number): readonly string[] => [
  `CREATE TABLE ${t.layout} (version int NOT NULL, partition_ms bigint NOT NULL)`,
  `INSERT INTO ${t.layout} VALUES (${schemaVersion}, ${partitionMs})`,
  `CREATE TABLE ${t.counters} (name text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 10)`,
  `INSERT INTO ${t.counters} VALUES ${counterNames.map((name) => `('${name}', 0)`).join(', ')}`,
  `CREATE TABLE ${t.partitions} (start_ms bigint PRIMARY KEY, reports bigint NOT NULL DEFAULT 0, report_bytes bigint NOT NULL DEFAULT 0)
    WITH (fillfactor = 50)`,
  `CREATE TABLE ${t.reports} (feed_id bytea NOT NULL, observations bigint NOT NULL, valid_from bigint NOT NULL, record bytea NOT NULL,
    PRIMARY KEY (feed_id, observations), CHECK (valid_from <= observations)) PARTITION BY RANGE (observations)`,
  `CREATE TABLE ${t.candles} (feed_id bytea NOT NULL, minute bigint NOT NULL, first_ms bigint NOT NULL, last_ms bigint NOT NULL,
    open numeric NOT NULL, high numeric NOT NULL, low numeric NOT NULL, close numeric NOT NULL, reports int NOT NULL,
    PRIMARY KEY (feed_id, minute)) PARTITION BY RANGE (minute)`,
  `CREATE TABLE ${t.heads} (feed_id bytea PRIMARY KEY, observations bigint NOT NULL) WITH (fillfactor = 50)`,
  `CREATE TABLE ${t.appended} (last_position bigint PRIMARY KEY, first_position bigint NOT NULL, keys bytea NOT NULL)`,
  `CREATE TABLE ${t.records} (kind text COLLATE "C", key text COLLATE "C", record bytea NOT NULL, PRIMARY KEY (kind, key))`,
  `CREATE TABLE ${t.audit} (sequence bigint PRIMARY KEY, record bytea NOT NULL)`,
  `CREATE TABLE ${t.quarantine} (sequence bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, record bytea NOT NULL)`,
  `CREATE TABLE ${t.usage} (user_id text COLLATE "C", day text COLLATE "C", route text COLLATE "C", requests bigint NOT NULL,
    PRIMARY KEY (user_id, day, route))`,
  `CREATE INDEX ON ${t.usage} (day)`,
  `CREATE TABLE ${t.secretUses} (user_id text COLLATE "C", secret_id text COLLATE "C", used_at_ms bigint NOT NULL,
    PRIMARY KEY (user_id, secret_id))`,
  `CREATE TABLE ${t.retention} (record bytea NOT NULL)`,
  `CREATE UNLOGGED TABLE ${t.nodeNews} (node text COLLATE "C", turn bigint, told_at timestamptz NOT NULL DEFAULT now(), news bytea NOT NULL,
    PRIMARY KEY (node, turn))`,
  `CREATE TABLE ${t.lineage} (epoch bytea NOT NULL, key bytea NOT NULL)`,
  // Without backslashes, whose meaning the setting `standard_conforming_strings` changes.
  `INSERT INTO ${t.lineage} VALUES (decode('${randomBytes(epochBytes).toString('hex')}', 'hex'), decode('${randomBytes(lineageKeyBytes).toString('hex')}', 'hex'))`,
];

type Layout = { readonly partitionMs: number };

/** The table or its schema is missing; so is the column. */
const [missingCodes, missingColumn] = [['42P01', '3F000'], '42703'];

/** The layout of a store, undefined where there is none; throws for one that this release cannot use, and says what to do. */
export async function readLayout(run: Run, t: Tables, shown: string): Promise<Layout | undefined> {
  const read = run<{ version: number; partition_ms: number }>(`SELECT version, partition_ms FROM ${t.layout}`);
  const [row] = await read.catch((error: unknown) => {
    const code = sqlState(error) ?? '';
    if (missingCodes.includes(code)) return [];
    if (code === missingColumn) return [{ version: 0, partition_ms: 0 }]; // of a version that has none
    throw error;
  });
  if (row === undefined) return undefined;
  const { version, partition_ms: partitionMs } = row;
  if (version > schemaVersion)
    throw new StoreError(
      'store_format_newer',
      `The store in ${shown} has schema ${version}; this release supports up to ${schemaVersion}. Upgrade sealpost.`,
    );
  if (version < schemaVersion)
    throw new StoreError(
      'store_format_older',
      `The store in ${shown} has an older schema; this release needs ${schemaVersion}. Use another schema (?schema=NAME), and copy the reports from a server of the older release with sealpost follow.`,
    );
  return { partitionMs };
}

/** Was the store made now? */
export type Migrated = { readonly from: number; readonly to: number };

/** Makes the tables of a store where there are none, all in one transaction; several at once do it once. */
export async function migratePostgres(url: string, partitionMs = dayMs): Promise<Migrated> {
  const address = parseAddress(url);
  const t = tablesOf(address.schema);
  const writer = openWriteConnection({ ...address, writeMs: Math.max(address.writeMs, 60_000) });
  try {
    return await writer.write(async (run) => {
      await takeLock(run, t, 'migrate');
      const known = await run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [t.schema]);
      if (known.length === 0) await run(`CREATE SCHEMA ${quoted(t.schema)}`);
      // An error would end the transaction.
      const [table] = await run<{ found: string | null }>('SELECT to_regclass($1)::text AS found', [t.layout]);
      if (table?.found != null && (await readLayout(run, t, address.shown)) !== undefined)
        return { from: schemaVersion, to: schemaVersion };
      for (const statement of statementsOf(t, partitionMs)) await run(statement);
      return { from: 0, to: schemaVersion };
    });
  } finally {
    await writer.close();
  }
}

/** The lineage of a store. The database's own number is part of it: a dump that is restored into another database has another history. */
export async function lineageOfDatabase(run: Run, t: Tables): Promise<Lineage> {
  const [row] = await run<{ epoch: Uint8Array; key: Uint8Array; database: string }>(
    `SELECT epoch, key, (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database FROM ${t.lineage} WHERE ${validLineage}`,
  );
  if (row === undefined) return randomLineage();
  const epoch = createHash('sha256').update(row.epoch).update(row.database).digest().subarray(0, 6);
  return { epoch, key: row.key };
}

/** Opens a pool for one short look. */
export async function lookAtLayout(address: DatabaseTarget): Promise<Layout | undefined> {
  const pool = openPool(address, 1, Math.max(address.readMs, 5_000));
  try {
    return await readLayout(pool.run, tablesOf(address.schema), address.shown);
  } finally {
    await pool.close();
  }
}
