// The PostgreSQL schema: numbered migrations, names of partitions, locks. It uses plain features only, so that compatible databases work. Reports and
// minutes are partitioned by time (D81).

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
  readonly migrations: string;
  readonly layout: string;
  /** One row. Made when it is first written, so that nodes of the release before can share the schema. */
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
  migrations: `${quoted(schema)}.migrations`,
  layout: `${quoted(schema)}.layout`,
  retention: `${quoted(schema)}.retention`,
  lineage: `${quoted(schema)}.lineage`,
  channel: `${schema}_changed`,
});

/** What must not happen twice at once, each with its own lock. */
const locks = { migrate: 1, reports: 2, admin: 3 };

/** Takes a lock until the transaction ends. A separate statement: those after it see what the last holder committed. */
export const takeLock = async (run: Run, { schema }: Tables, name: keyof typeof locks): Promise<void> => {
  const family = 0x5ea10000 + locks[name];
  await run('SELECT pg_advisory_xact_lock($1::int, $2::int)', [family, crc32(schema) | 0]);
};

/** The counters of a store. */
export const counterNames: readonly string[] = ['position', 'admin', 'trimmed', 'confirmed'];

const epochBytes = 6;
const lineageKeyBytes = 16;
/** Where the one row of the lineage is as it was written. */
export const validLineage = `octet_length(epoch) = ${epochBytes} AND octet_length(key) = ${lineageKeyBytes}`;
const randomLineage = (): Lineage => ({ epoch: randomBytes(epochBytes), key: randomBytes(lineageKeyBytes) });

/** The migrations in order; one that was released is never changed. */
const migrations: readonly {
  readonly name: string;
  readonly statements: (t: Tables, partitionMs: number) => readonly string[];
}[] = [
  {
    name: 'reports, administration, usage',
    statements: (t, partitionMs) => [
      `CREATE TABLE ${t.layout} (partition_ms bigint NOT NULL)`,
      `INSERT INTO ${t.layout} VALUES (${partitionMs})`,
      `CREATE TABLE ${t.counters} (name text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 10)`,
      `INSERT INTO ${t.counters} VALUES ('position', 0), ('admin', 0), ('trimmed', 0), ('confirmed', 0)`,
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
    ],
  },
  {
    name: 'what nodes tell each other',
    statements: (t) => [
      `CREATE UNLOGGED TABLE ${t.nodeNews} (node text COLLATE "C", turn bigint, told_at timestamptz NOT NULL DEFAULT now(), news bytea NOT NULL,
        PRIMARY KEY (node, turn))`,
    ],
  },
  {
    name: 'last use of secrets',
    statements: (t) => [
      `CREATE TABLE ${t.secretUses} (user_id text COLLATE "C", secret_id text COLLATE "C", used_at_ms bigint NOT NULL,
        PRIMARY KEY (user_id, secret_id))`,
    ],
  },
  {
    name: 'the lineage of positions',
    statements: (t) => [
      `CREATE TABLE ${t.lineage} (epoch bytea NOT NULL, key bytea NOT NULL)`,
      // Without backslashes, whose meaning the setting `standard_conforming_strings` changes.
      `INSERT INTO ${t.lineage} VALUES (decode('${randomBytes(epochBytes).toString('hex')}', 'hex'), decode('${randomBytes(lineageKeyBytes).toString('hex')}', 'hex'))`,
    ],
  },
];

/** The number of the newest migration that this release knows. */
const schemaVersion = migrations.length;

const isMissing = (error: unknown): boolean => ['42P01', '3F000'].includes(sqlState(error) ?? '');

const versionOf = async (run: Run, t: Tables): Promise<number> => {
  const [row] = await run<{ version: number | null }>(`SELECT max(version) AS version FROM ${t.migrations}`);
  return row?.version ?? 0;
};

const newerSchema = (shown: string, version: number): StoreError =>
  new StoreError(
    'store_format_newer',
    `The store in ${shown} has schema ${version}; this release supports up to ${schemaVersion}. Upgrade sealpost.`,
  );

/** What was done: the version before and after. */
export type Migrated = { readonly from: number; readonly to: number };

/** Brings the schema up to this release, all in one transaction; several at once do it once. `partitionMs` counts for a new store only. */
export const migratePostgres = async (url: string, partitionMs = dayMs): Promise<Migrated> => {
  const address = parseAddress(url);
  const t = tablesOf(address.schema);
  const writer = openWriteConnection({ ...address, writeMs: Math.max(address.writeMs, 60_000) });
  try {
    return await writer.write(async (run) => {
      await takeLock(run, t, 'migrate');
      const known = await run('SELECT 1 FROM pg_namespace WHERE nspname = $1', [t.schema]);
      if (known.length === 0) await run(`CREATE SCHEMA ${quoted(t.schema)}`);
      const [table] = await run<{ found: string | null }>('SELECT to_regclass($1)::text AS found', [t.migrations]);
      if (table?.found == null)
        await run(
          `CREATE TABLE ${t.migrations} (version int PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
        );
      const from = await versionOf(run, t);
      if (from > schemaVersion) throw newerSchema(address.shown, from);
      for (const [i, { name, statements }] of migrations.entries()) {
        if (i < from) continue;
        for (const statement of statements(t, partitionMs)) await run(statement);
        await run(`INSERT INTO ${t.migrations} (version, name) VALUES ($1::int, $2::text)`, [i + 1, name]);
      }
      return { from, to: schemaVersion };
    });
  } finally {
    await writer.close();
  }
};

/** The layout of a store; throws for one that this release cannot use, and says what to do. */
export const readLayout = async (
  run: Run,
  t: Tables,
  shown: string,
): Promise<{ readonly partitionMs: number } | undefined> => {
  const version = await versionOf(run, t).catch((error: unknown) => {
    if (isMissing(error)) return 0;
    throw error;
  });
  if (version === 0) return undefined;
  if (version > schemaVersion) throw newerSchema(shown, version);
  if (version < schemaVersion)
    throw new StoreError(
      'store_format_older',
      `The store in ${shown} has schema ${version}; this release needs ${schemaVersion}. Run: sealpost store migrate.`,
    );
  const [layout] = await run<{ partition_ms: number }>(`SELECT partition_ms FROM ${t.layout}`);
  return { partitionMs: layout?.partition_ms ?? dayMs };
};

/** The lineage of a store. The database's own number is part of it: a dump that is restored into another database has another history. */
export const lineageOfDatabase = async (run: Run, t: Tables): Promise<Lineage> => {
  const [row] = await run<{ epoch: Uint8Array; key: Uint8Array; database: string }>(
    `SELECT epoch, key, (SELECT oid::text FROM pg_database WHERE datname = current_database()) AS database FROM ${t.lineage} WHERE ${validLineage}`,
  );
  if (row === undefined) return randomLineage();
  const epoch = createHash('sha256').update(row.epoch).update(row.database).digest().subarray(0, 6);
  return { epoch, key: row.key };
};

/** Opens a pool for one short look. */
export const lookAtLayout = async (address: DatabaseTarget): Promise<{ readonly partitionMs: number } | undefined> => {
  const pool = openPool(address, 1, Math.max(address.readMs, 5_000));
  try {
    return await readLayout(pool.run, tablesOf(address.schema), address.shown);
  } finally {
    await pool.close();
  }
};
