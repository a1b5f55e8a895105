// Repairs what PostgreSQL holds besides reports: append order, counters, the list of partitions, administration (D131, D137).
import type { SignerSets } from '@sealpost/protocol';
import { keyedBy } from '../../admin-keys.ts';
import { createDamageLog, dependentsOf } from '../../damage.ts';
import { decodeRecord } from '../../format/record.ts';
import { attempt } from '../../format/report-correction.ts';
import type { AsideFile, createRepairTally, Loss, RepairOptions } from '../../repair.ts';
import type { AdminKind, RegisteredSignerSet } from '../../store.ts';
import { type AuditRow, decodeAdmin, decodeAuditRow } from '../admin.ts';
import { positionMax } from '../append.ts';
import type { Run, WriteConnection } from '../connection.ts';
import { type Partition, readLeaves } from '../partitions.ts';
import { type BatchRow, countKeys, isLostBatch, lostKeys, readBatch } from '../rows.ts';
import { counterNames, randomLineage, type Tables, takeLock, validLineage } from '../schema.ts';

/** What the steps of a repair share. */
export type PostgresRepair = {
  /** Reads outside of any transaction. */
  readonly run: Run;
  readonly write: WriteConnection['write'];
  readonly t: Tables;
  readonly partitionOf: (ms: number) => Partition;
  readonly file: AsideFile;
  readonly tally: ReturnType<typeof createRepairTally>;
  readonly lost: Loss[];
  readonly left: { readonly table: string; readonly key: string; readonly why: string }[];
  readonly options: RepairOptions;
};

export const nothingKnown = { feedId: null, fromMs: null, toMs: null, reports: null };

/** Puts a row into the file. Columns that are no bytes are written as JSON. */
export const putRowAside = (
  { file, t }: PostgresRepair,
  table: string,
  key: string,
  value: Uint8Array | object,
  reason: string,
): void =>
  file.put({
    environment: t.schema,
    table,
    key,
    value: value instanceof Uint8Array ? value : Buffer.from(JSON.stringify(value)),
    reason,
  });

/** Runs a step: in a transaction under a lock, with the file on the disk before its end, or, where nothing is to be changed, as readings alone. */
export const takeStep = async (
  { run, write, t, file, options }: PostgresRepair,
  lock: 'reports' | 'admin',
  act: (on: Run) => Promise<void>,
): Promise<void> => {
  options.signal?.throwIfAborted();
  if (options.dryRun) return act(run);
  await write(async (on) => {
    await takeLock(on, t, lock);
    await act(on);
    file.flush();
  });
};

type Gap = { readonly from: number; readonly to: number };
type Batches = { readonly damaged: readonly BatchRow[]; readonly gaps: Gap[]; readonly last: number };

/** Batches read at once: each has some 40 bytes for each of its reports. */
const batchesRead = 64;

/** What is damaged in the order of appending, and the positions that no batch has. */
const findGaps = async (run: Run, t: Tables, counter: number | undefined): Promise<Batches> => {
  const log = createDamageLog();
  const damaged: BatchRow[] = [];
  const gaps: Gap[] = [];
  let [start, last]: (number | undefined)[] = [undefined, undefined];
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const rows = await run<BatchRow>(
      `SELECT first_position, last_position, keys FROM ${t.appended} WHERE last_position > $1::bigint
       ORDER BY last_position LIMIT ${batchesRead}`,
      [after],
    );
    for (const row of rows) {
      const { first_position: from, last_position: to } = row;
      after = to;
      const isKnown = isLostBatch(row) || readBatch(log, row) !== undefined;
      if (!isKnown || to > positionMax || from <= (last ?? 0)) damaged.push(row);
      else {
        if (last !== undefined && from > last + 1) gaps.push({ from: last + 1, to: from - 1 });
        start ??= from;
        last = to;
      }
    }
    if (rows.length < batchesRead) break;
  }
  // What was before the first batch that is left, only a damaged one can say: older ones are forgotten.
  const firsts = damaged.map(({ first_position: at }) => at).filter((at) => at > 0 && at < (start ?? positionMax));
  const first = Math.min(...firsts, start ?? positionMax);
  if (start !== undefined && first < start) gaps.unshift({ from: first, to: start - 1 });
  const end = counter !== undefined && counter <= positionMax ? counter : 0;
  const next = last === undefined ? first : last + 1;
  if (next <= end) gaps.push({ from: next, to: end });
  return { damaged, gaps, last: Math.max(last ?? 0, end) };
};

/** Where a batch belongs whose keys are intact, and one of whose ends is: there it fits into a gap, which it is taken out of. */
const takeOwnGap = (gaps: Gap[], { first_position: first, last_position: last, keys }: BatchRow): Gap | undefined => {
  const count = countKeys(keys);
  if (count === undefined) return undefined;
  for (const from of [last - count + 1, first]) {
    const own = { from, to: from + count - 1 };
    const at = gaps.findIndex((gap) => gap.from <= own.from && own.to <= gap.to);
    const gap = gaps[at];
    if (gap === undefined) continue;
    const rest = [
      { from: gap.from, to: own.from - 1 },
      { from: own.to + 1, to: gap.to },
    ];
    gaps.splice(at, 1, ...rest.filter(({ from: start, to }) => start <= to));
    return own;
  }
  return undefined;
};

const readPosition = async (run: Run, t: Tables): Promise<number | undefined> =>
  (await run<{ value: number }>(`SELECT value FROM ${t.counters} WHERE name = 'position'`))[0]?.value;

/** Batches of the append order: one whose positions are damaged returns to the gap that it fits; the place of a lost one is marked. */
export const repairBatches = (repair: PostgresRepair): Promise<void> =>
  takeStep(repair, 'reports', async (run) => {
    const { t, tally, lost, options } = repair;
    const counter = await readPosition(run, t);
    const { damaged, gaps, last } = await findGaps(run, t, counter);
    const puts: { readonly gap: Gap; readonly keys: Buffer }[] = [];
    for (const row of damaged) {
      const place = `${row.first_position}-${row.last_position}`;
      putRowAside(repair, 'appended', place, row.keys, 'it is damaged');
      const own = takeOwnGap(gaps, row);
      if (own !== undefined) puts.push({ gap: own, keys: row.keys });
    }
    if (puts.length > 0) tally.add('appended', puts.length);
    for (const gap of gaps) {
      puts.push({ gap, keys: lostKeys });
      const what = `the order of appending from position ${gap.from} to ${gap.to}`;
      lost.push({ ...nothingKnown, table: 'appended', key: `${gap.from}`, what });
    }
    const isPlaced = counter === last;
    if (!isPlaced) tally.add('counters');
    if (options.dryRun) return;
    for (const { last_position: at } of damaged)
      await run(`DELETE FROM ${t.appended} WHERE last_position = $1::bigint`, [at]);
    for (const { gap, keys } of puts)
      await run(
        `INSERT INTO ${t.appended} (last_position, first_position, keys) VALUES ($1::bigint, $2::bigint, $3::bytea)`,
        [gap.to, gap.from, keys],
      );
    if (!isPlaced)
      await run(
        `INSERT INTO ${t.counters} (name, value) VALUES ('position', $1::bigint) ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
        [last],
      );
  });

/** Counters by name, and the one valid row of the lineage. */
export const repairCounters = (repair: PostgresRepair): Promise<void> =>
  takeStep(repair, 'reports', async (run) => {
    const { t, tally, options } = repair;
    const rows = await run<{ name: string; value: number }>(`SELECT name, value FROM ${t.counters}`);
    const strays = rows.filter(({ name }) => !counterNames.includes(name));
    const missing = counterNames.filter((name) => !rows.some((row) => row.name === name));
    for (const row of strays) putRowAside(repair, 'counters', row.name, row, 'it has no meaning');
    const lineages = await run(`SELECT 1 FROM ${t.lineage} WHERE ${validLineage}`);
    for (const _ of missing) tally.add('counters');
    if (lineages.length === 0) tally.add('lineage');
    if (options.dryRun) return;
    for (const { name } of strays) await run(`DELETE FROM ${t.counters} WHERE name = $1::text`, [name]);
    for (const name of missing) await run(`INSERT INTO ${t.counters} (name, value) VALUES ($1::text, 0)`, [name]);
    if (lineages.length > 0) return;
    const { epoch, key } = randomLineage();
    await run(`DELETE FROM ${t.lineage}`);
    await run(`INSERT INTO ${t.lineage} (epoch, key) VALUES ($1::bytea, $2::bytea)`, [epoch, key]);
  });

type CountRow = { readonly reports: number; readonly report_bytes: number };

/** The length of a full report, from the first byte of its packed form: words of 32 bytes, or 0 where it is stored as it came. */
const fullLength = `CASE get_byte(record, 4) WHEN 0 THEN octet_length(record) - 5 ELSE get_byte(record, 4) * 32 END`;

/** The list of partitions, from the tables that there are, and what each holds. */
export const repairPartitions = async (repair: PostgresRepair): Promise<void> => {
  const { t, tally, options, partitionOf } = repair;
  await takeStep(repair, 'reports', async (run) => {
    const leaves = new Set((await readLeaves(run, t)).map(({ startMs }) => startMs));
    const rows = await run<CountRow & { start_ms: number }>(
      `SELECT start_ms, reports, report_bytes FROM ${t.partitions}`,
    );
    for (const row of rows.filter(({ start_ms }) => !leaves.has(start_ms))) {
      putRowAside(repair, 'partitions', `${row.start_ms}`, row, 'there is no such partition');
      tally.add('partitions');
      if (!options.dryRun) await run(`DELETE FROM ${t.partitions} WHERE start_ms = $1::bigint`, [row.start_ms]);
    }
  });
  for (const { startMs } of await readLeaves(repair.run, t))
    await takeStep(repair, 'reports', async (run) => {
      const [count] = await run<CountRow>(
        `SELECT count(*) AS reports, coalesce(sum(${fullLength}), 0)::bigint AS report_bytes FROM ${partitionOf(startMs).reports} WHERE octet_length(record) > 4`,
      );
      const [row] = await run<CountRow>(
        `SELECT reports, report_bytes FROM ${t.partitions} WHERE start_ms = $1::bigint`,
        [startMs],
      );
      if (count === undefined || (row?.reports === count.reports && row.report_bytes === count.report_bytes)) return;
      if (row !== undefined) putRowAside(repair, 'partitions', `${startMs}`, row, 'it is not what the partition holds');
      tally.add('partitions');
      if (!options.dryRun)
        await run(
          `INSERT INTO ${t.partitions} (start_ms, reports, report_bytes) VALUES ($1::bigint, $2::bigint, $3::bigint)
           ON CONFLICT (start_ms) DO UPDATE SET reports = excluded.reports, report_bytes = excluded.report_bytes`,
          [startMs, count.reports, count.report_bytes],
        );
    });
};

type RecordRow = { readonly kind: string; readonly key: string; readonly record: Buffer };

/** The intact signer sets, retired ones included. */
export const readStoredSets = async (run: Run, t: Tables): Promise<SignerSets> => {
  const rows = await run<RecordRow>(`SELECT kind, key, record FROM ${t.records} WHERE kind = 'signerSet'`);
  const sets = rows.flatMap(({ key, record }) => attempt(() => decodeAdmin('signerSet', key, record)) ?? []);
  return new Map(sets.map((set: RegisteredSignerSet) => [set.configDigest, set]));
};

/** Where a record with a damaged key belongs: under its own key of the same kind, or under its key of the one kind that has such a record. */
const ownPlace = ({ kind, key, record }: RecordRow, of: (record: object) => AdminKind | undefined) => {
  const content = attempt(() => decodeRecord<object>(record, key));
  if (content === undefined) return undefined;
  const own = Object.hasOwn(keyedBy, kind) ? (kind as AdminKind) : of(content); // a key of the table
  const name = own && keyedBy[own](content as never); // whatever it is, its key is text or it is not of this kind
  return own !== undefined && typeof name === 'string' ? { kind: own, key: name } : undefined;
};

/** The kind of a record by a field that no other kind has. */
const kindOf = (record: object): AdminKind | undefined => {
  if ('userId' in record) return 'account';
  if ('configDigest' in record) return 'signerSet';
  if (!('feedId' in record)) return undefined;
  return 'baseAsset' in record ? 'stream' : 'mirror';
};

/** Administrative records: one under a damaged key returns to its own, one that is damaged goes. */
export const repairRecords = (repair: PostgresRepair): Promise<void> =>
  takeStep(repair, 'admin', async (run) => {
    const { t, tally, lost, options } = repair;
    const rows = await run<RecordRow>(`SELECT kind, key, record FROM ${t.records}`);
    const taken = new Set(rows.map(({ kind, key }) => `${kind}/${key}`));
    const damaged = rows.filter(
      ({ kind, key, record }) => attempt(() => decodeAdmin(kind as AdminKind, key, record)) === undefined, // refused where it is none
    );
    for (const row of damaged) {
      const name = `${row.kind}/${row.key}`;
      putRowAside(repair, 'records', name, row.record, 'it is damaged');
      const own = ownPlace(row, kindOf);
      if (own !== undefined) tally.add('records');
      else lost.push({ ...nothingKnown, table: 'records', key: name, what: dependentsOf('records', name) });
      if (options.dryRun) continue;
      await run(`DELETE FROM ${t.records} WHERE kind = $1::text AND key = $2::text`, [row.kind, row.key]);
      // What was written under that key since is newer.
      if (own !== undefined && !taken.has(`${own.kind}/${own.key}`))
        await run(`INSERT INTO ${t.records} (kind, key, record) VALUES ($1::text, $2::text, $3::bytea)`, [
          own.kind,
          own.key,
          row.record,
        ]);
    }
    if (damaged.length === 0 || options.dryRun) return;
    await run(`UPDATE ${t.counters} SET value = value + 1 WHERE name = 'admin'`);
    await run('SELECT pg_notify($1::text, $2::text)', [t.channel, 'admin']);
  });

/** Entries of the audit log return to their own numbers; damaged ones stay. Damaged lines of the quarantine go. */
export const repairLogs = (repair: PostgresRepair): Promise<void> =>
  takeStep(repair, 'admin', async (run) => {
    const { t, tally, lost, left, options } = repair;
    const audit = await run<AuditRow>(`SELECT sequence, record FROM ${t.audit} ORDER BY sequence`);
    const taken = new Set(audit.map(({ sequence }) => sequence));
    for (const row of audit) {
      if (attempt(() => decodeAuditRow(row)) !== undefined) continue;
      const key = `${row.sequence}`;
      putRowAside(repair, 'audit', key, row.record, 'it is damaged');
      const own = attempt(() => decodeRecord<{ readonly sequence: number }>(row.record, key))?.sequence;
      if (own === undefined || taken.has(own)) {
        left.push({
          table: 'audit',
          key,
          why: 'entries of the audit log are never removed; sealpost audit verify names it',
        });
        continue;
      }
      tally.add('audit');
      if (!options.dryRun)
        await run(`UPDATE ${t.audit} SET sequence = $2::bigint WHERE sequence = $1::bigint`, [row.sequence, own]);
    }
    const lines = await run<AuditRow>(`SELECT sequence, record FROM ${t.quarantine} ORDER BY sequence`);
    for (const { sequence, record } of lines) {
      if (attempt(() => [decodeRecord(record, '')]) !== undefined) continue;
      putRowAside(repair, 'quarantine', `${sequence}`, record, 'it is damaged');
      lost.push({ ...nothingKnown, table: 'quarantine', key: `${sequence}`, what: dependentsOf('quarantine', '') });
      if (!options.dryRun) await run(`DELETE FROM ${t.quarantine} WHERE sequence = $1::bigint`, [sequence]);
    }
  });
