// The format of the reports environment: its version, and the lineage that positions count in (D123).
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { DamageLog } from '../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../format/record.ts';
import { CorruptRecordError, type Lineage, StoreError } from '../store.ts';
import { repairStreams } from './directory.ts';
import type { Environment } from './environment.ts';
import { pagesFile } from './pages-file.ts';
import { countedRecords, isCounted, type ReportTables } from './report-tables.ts';

/** The layout that this release writes. A store of a newer release is rejected. */
const formatVersion = 3;

const formatKey = Buffer.from('format');
const lineageKey = Buffer.from('lineage');
const rollupsKey = Buffer.from('rollups');

/** Tells 0.1.0 that all hours and days of candles are made: it would make them again. */
const rollupsMark = encodeKeyedRecord(rollupsKey, { before: null });

const encodeFormat = (version: number): Buffer => {
  const value = Buffer.from([version, 0, 0, 0, 0]);
  value.writeUInt32BE(crc32(value.subarray(0, 1)), 1);
  return value;
};

const isEmpty = ({ blocks, tail }: ReportTables): boolean =>
  [blocks, tail].every((table) => [...table.getKeys({ limit: 1 })].length === 0);

/** The format of a store; undefined for a new one. A damaged one is noted. */
const formatOf = (tables: ReportTables, damage: DamageLog): number | undefined => {
  const value = tables.meta.get(formatKey);
  if (value === undefined && isEmpty(tables)) return undefined;
  const version = value?.[0];
  if (value?.length === 5 && crc32(value.subarray(0, 1)) === value.readUInt32BE(1)) return version;
  damage.note({ table: 'meta', key: 'format', reason: 'the format does not match its checksum' });
  return formatVersion;
};

/** Throws where a store is of a newer release. */
export const checkFormat = (tables: ReportTables, folder: string, damage: DamageLog): void => {
  const format = formatOf(tables, damage);
  if (format === undefined || format <= formatVersion) return;
  throw new StoreError(
    'store_format_newer',
    `The store in ${folder} has format ${format}; this release reads up to ${formatVersion}. Upgrade sealpost.`,
  );
};

/** Prepares a store for its writer: stamps a new one, rebuilds small corrupt tables. */
export const prepareReports = (environment: Environment, tables: ReportTables, damage: DamageLog): void => {
  environment.root.transactionSync(() => {
    repairStreams(tables, damage);
    const stamp = encodeFormat(formatVersion);
    if (tables.meta.get(formatKey)?.equals(stamp) !== true) tables.meta.put(formatKey, stamp);
    const mark = tables.meta.get(rollupsKey);
    if (mark !== undefined && !mark.equals(rollupsMark))
      damage.note({ table: 'meta', key: 'rollups', reason: 'the record rollups does not match its checksum' });
    if (mark?.equals(rollupsMark) !== true) tables.meta.put(rollupsKey, rollupsMark);
    if (storedLineage(environment, tables, damage) === undefined) {
      const lineage = { epoch: randomBytes(6).toString('hex'), key: randomBytes(16).toString('hex') };
      tables.meta.put(lineageKey, encodeKeyedRecord(lineageKey, { ...lineage, file: fileOf(environment) }));
    }
  });
};

type StoredLineage = { readonly epoch: string; readonly key: string; readonly file: string };

// A file that was copied or restored has another number, and from then on its own history.
const fileOf = ({ folder }: Environment): string => String(statSync(pagesFile(folder), { bigint: true }).ino);

const storedLineage = (
  environment: Environment,
  { meta }: ReportTables,
  damage?: DamageLog,
): StoredLineage | undefined => {
  const value = meta.get(lineageKey);
  if (value === undefined) return undefined;
  try {
    const lineage = decodeKeyedRecord<StoredLineage>(lineageKey, value, 'the lineage');
    return lineage.file === fileOf(environment) ? lineage : undefined;
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    damage?.note({ table: 'meta', key: 'lineage', reason: error.message });
    return undefined; // a new one costs each client one catch-up
  }
};

/** The lineage of a store; one of this process alone where no writer gave it one. */
export const lineageOfStore = (environment: Environment, tables: ReportTables): Lineage => {
  const stored = storedLineage(environment, tables);
  if (stored === undefined) return { epoch: randomBytes(6), key: randomBytes(16) };
  return { epoch: Buffer.from(stored.epoch, 'hex'), key: Buffer.from(stored.key, 'hex') };
};

const metaNames = ['format', 'lineage', 'rollups', ...countedRecords.keys()];

const isOneBitOff = (name: string, key: Buffer): boolean => {
  if (name.length !== key.length) return false;
  let bits = 0;
  for (const [i, byte] of key.entries())
    for (let rest = byte ^ name.charCodeAt(i); rest > 0; rest >>= 1) bits += rest & 1;
  return bits === 1;
};

/** Throws unless a record of `meta` is what was written. */
export const checkMeta = (key: Buffer, value: Buffer): void => {
  const name = key.toString('latin1');
  const meant = metaNames.find((known) => isOneBitOff(known, key));
  if (meant !== undefined) throw new CorruptRecordError(`the key of ${meant} is damaged`);
  const counted = countedRecords.get(name);
  const isIntact =
    counted !== undefined ? isCounted(value, counted) : name !== 'format' || value.equals(encodeFormat(value[0] ?? 0));
  if (!isIntact) throw new CorruptRecordError(`${name} does not match its checksum`);
  if (name === 'lineage' || name === 'rollups') decodeKeyedRecord(key, value, `the record ${name}`);
};
