// The format of the reports environment: its version, and the lineage that positions count in (D123).
import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { crc32 } from 'node:zlib';
import type { DamageLog } from '../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../format/record.ts';
import { CorruptRecordError, type Lineage, StoreError } from '../store.ts';
import { repairStreams } from './directory.ts';
import type { Environment, Table } from './environment.ts';
import { pagesFile } from './pages-file.ts';
import { countedRecords, isCounted, type ReportTables } from './report-tables.ts';

/** The layout that this release writes, and the only one that it reads. */
const formatVersion = 4;

const formatKey = Buffer.from('format');
const lineageKey = Buffer.from('lineage');

const encodeFormat = (version: number): Buffer => {
  const value = Buffer.from([version, 0, 0, 0, 0]);
  value.writeUInt32BE(crc32(value.subarray(0, 1)), 1);
  return value;
};

/** Throws where a store is of another release. A format that is damaged is noted, and taken for this one. */
export function checkFormat(meta: Table | undefined, folder: string, damage: DamageLog): void {
  const value = meta?.get(formatKey);
  if (value === undefined) return;
  const [format = 0] = value;
  if (value.length !== 5 || crc32(value.subarray(0, 1)) !== value.readUInt32BE(1)) {
    damage.note({ table: 'meta', key: 'format', reason: 'the format does not match its checksum' });
    return;
  }
  if (format === formatVersion) return;
  const [code, advice] =
    format > formatVersion
      ? (['store_format_newer', 'Upgrade sealpost.'] as const)
      : ([
          'store_format_older',
          'Open it with the release that wrote it, or start with a new folder and copy its reports with sealpost follow.',
        ] as const);
  throw new StoreError(
    code,
    `The store in ${folder} has format ${format}; this release reads format ${formatVersion}. ${advice}`,
  );
}

/** Prepares a store for its writer: stamps a new one, rebuilds small corrupt tables. */
export function prepareReports(environment: Environment, tables: ReportTables, damage: DamageLog): void {
  environment.root.transactionSync(() => {
    repairStreams(tables, damage);
    const stamp = encodeFormat(formatVersion);
    if (tables.meta.get(formatKey)?.equals(stamp) !== true) tables.meta.put(formatKey, stamp);
    if (storedLineage(environment, tables, damage) === undefined) {
      const lineage = { epoch: randomBytes(6).toString('hex'), key: randomBytes(16).toString('hex') };
      tables.meta.put(lineageKey, encodeKeyedRecord(lineageKey, { ...lineage, file: fileOf(environment) }));
    }
  });
}

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
export function lineageOfStore(environment: Environment, tables: ReportTables): Lineage {
  const stored = storedLineage(environment, tables);
  if (stored === undefined) return { epoch: randomBytes(6), key: randomBytes(16) };
  return { epoch: Buffer.from(stored.epoch, 'hex'), key: Buffer.from(stored.key, 'hex') };
}

const metaNames = ['format', 'lineage', ...countedRecords.keys()];

/** Throws unless a record of `meta` is what was written. */
export function checkMeta(key: Buffer, value: Buffer): void {
  const name = key.toString('latin1');
  if (!metaNames.includes(name)) throw new CorruptRecordError(`the key ${JSON.stringify(name)} is damaged`);
  const counted = countedRecords.get(name);
  const isIntact =
    counted !== undefined ? isCounted(value, counted) : name !== 'format' || value.equals(encodeFormat(value[0] ?? 0));
  if (!isIntact) throw new CorruptRecordError(`${name} does not match its checksum`);
  if (name === 'lineage') decodeKeyedRecord(key, value, 'the lineage');
}
