// Repairs rows of reports in PostgreSQL: a flipped bit or damaged key is corrected where checksum and quorum prove it; any other corrupt row becomes a row
// without a record, which marks its report as lost. Minutes and newest reports are derived again (D131, D137).
import { type FeedId, type SignerSets, timeResolutionOf } from '@sealpost/protocol';
import { judgeReport } from '../../append-rules.ts';
import { unpackReport } from '../../format/packed-report.ts';
import { contentsOf } from '../../format/report-contents.ts';
import { attempt, correctReport } from '../../format/report-correction.ts';
import type { StoredReport, Window } from '../../store.ts';
import { insertReports, makePartitions, readNeighbours } from '../append.ts';
import type { Run } from '../connection.ts';
import { readLeaves } from '../partitions.ts';
import {
  decodeReport,
  feedBytes,
  feedIdOfBytes,
  isLostReport,
  notLost,
  type ReportRow,
  reportColumns,
} from '../rows.ts';
import type { Tables } from '../schema.ts';
import { nothingKnown, type PostgresRepair, putRowAside, takeStep } from './repair-tables.ts';

export type KeyedRow = ReportRow & { readonly feed_id: Buffer };

/** The report of a damaged row: under the key that it names itself, or with one bit of its record corrected. */
const recover = (row: KeyedRow, signerSets: SignerSets): StoredReport | undefined => {
  const own = attempt(() => contentsOf(unpackReport(row.record.subarray(4))));
  const moved =
    own &&
    attempt(() =>
      decodeReport(own.feedId, { observations: own.observationsMs, valid_from: own.validFromMs, record: row.record }),
    );
  if (moved !== undefined) return moved;
  const feedId = feedIdOfBytes(row.feed_id);
  const record = Buffer.from(row.record);
  const read = () => attempt(() => decodeReport(feedId, { ...row, record }));
  return correctReport(record, [0, record.length], read, { feedId, signerSets });
};

/** Takes a damaged row out, unless it was replaced meanwhile; says whether it did. */
const takeOut = async (run: Run, t: Tables, { feed_id, observations, record }: KeyedRow): Promise<boolean> => {
  const gone = await run(
    `DELETE FROM ${t.reports} WHERE feed_id = $1::bytea AND observations = $2::bigint AND record = $3::bytea RETURNING observations`,
    [feed_id, observations, record],
  );
  return gone.length > 0;
};

/** Puts a report back, where no other has its place. */
const putBack = async ({ t, partitionOf }: PostgresRepair, run: Run, report: StoredReport): Promise<void> => {
  const neighbours = await readNeighbours(run, t, [report]);
  if (judgeReport(report, neighbours.get(report) ?? []) !== undefined) return;
  const partition = partitionOf(report.observationsMs);
  await makePartitions(run, t, partitionOf, [partition]);
  await insertReports(run, partition, [report]);
};

/** Says that the report of a row is lost. */
const markLost = ({ t }: PostgresRepair, run: Run, row: KeyedRow) =>
  run(
    `INSERT INTO ${t.reports} (feed_id, observations, valid_from, record) VALUES ($1::bytea, $2::bigint, $3::bigint, ''::bytea)`,
    [row.feed_id, row.observations, Math.min(row.valid_from, row.observations)],
  );

/** Does a stream have anything but this row? */
const isKnownStream = async (run: Run, t: Tables, { feed_id, observations }: KeyedRow): Promise<boolean> => {
  const [known] = await run(
    `SELECT 1 FROM ${t.heads} WHERE feed_id = $1::bytea
     UNION ALL (SELECT 1 FROM ${t.reports} WHERE feed_id = $1::bytea AND observations <> $2::bigint LIMIT 1)`,
    [feed_id, observations],
  );
  return known !== undefined;
};

/** A damaged row goes to the file, and what of it can be proven comes back. Of a row whose stream has no others the stream is not known. */
export const repairRow = async (
  repair: PostgresRepair,
  row: KeyedRow,
  signerSets: SignerSets,
): Promise<StoredReport | 'lost' | 'unknown'> => {
  const { t, options, tally } = repair;
  const report = recover(row, signerSets);
  const isKnown = await isKnownStream(repair.run, t, row);
  await takeStep(repair, 'reports', async (run) => {
    if (!options.dryRun && !(await takeOut(run, t, row))) return;
    const key = `${feedIdOfBytes(row.feed_id)}/${row.observations}/${row.valid_from}`;
    putRowAside(repair, 'reports', key, row.record, report === undefined ? 'it is damaged' : 'it was corrected');
    if (report !== undefined) tally.add('reports');
    if (options.dryRun) return;
    if (report !== undefined) await putBack(repair, run, report);
    else if (isKnown) await markLost(repair, run, row);
  });
  return report ?? (isKnown ? 'lost' : 'unknown');
};

/** Rows without a record, in order. */
export const readLost = async ({ run, t, partitionOf }: PostgresRepair): Promise<readonly KeyedRow[]> => {
  const rows: KeyedRow[] = [];
  // Each partition by itself: no index knows these rows.
  for (const { startMs } of await readLeaves(run, t))
    rows.push(
      ...(await run<KeyedRow>(
        `SELECT feed_id, ${reportColumns} FROM ${partitionOf(startMs).reports} WHERE NOT ${notLost}`,
      )),
    );
  return rows.sort((a, b) => Buffer.compare(a.feed_id, b.feed_id) || a.observations - b.observations);
};

/** Damaged rows next to a moment that are looked past; without a change there may be some. */
const rowsPassed = 64;

const nearest = async (run: Run, t: Tables, row: KeyedRow, order: 'ASC' | 'DESC'): Promise<Window | undefined> => {
  const rows = await run<ReportRow>(
    `SELECT ${reportColumns} FROM ${t.reports} WHERE feed_id = $1::bytea AND observations ${order === 'ASC' ? '>' : '<'} $2::bigint AND ${notLost}
     ORDER BY observations ${order} LIMIT ${rowsPassed}`,
    [row.feed_id, row.observations],
  );
  for (const one of rows) {
    const report = attempt(() => decodeReport(feedIdOfBytes(row.feed_id), one));
    if (report !== undefined) return report;
  }
  return undefined;
};

type Lost = { readonly rows: KeyedRow[]; readonly before: Window | undefined; readonly after: Window | undefined };

/** Lost reports without an intact one between them, together. */
const groupLost = async (run: Run, t: Tables, rows: readonly KeyedRow[]): Promise<readonly Lost[]> => {
  const groups: Lost[] = [];
  for (const row of rows) {
    const group = groups.at(-1);
    const isSame = group?.rows[0]?.feed_id.equals(row.feed_id) ?? false;
    if (isSame && row.observations < (group?.after?.observationsMs ?? Number.POSITIVE_INFINITY)) group?.rows.push(row);
    else
      groups.push({
        rows: [row],
        before: await nearest(run, t, row, 'DESC'),
        after: await nearest(run, t, row, 'ASC'),
      });
  }
  return groups;
};

/** Lists lost reports, and forgets those that nothing is missing of: the reports around them meet. */
export const listLost = async (repair: PostgresRepair, rows: readonly KeyedRow[]): Promise<void> => {
  const { run, t, lost, options } = repair;
  for (const { rows: group, before, after } of await groupLost(run, t, rows)) {
    const [first, last] = [group[0] as KeyedRow, group.at(-1) as KeyedRow]; // there is one
    const feedId = feedIdOfBytes(first.feed_id);
    const unitMs = timeResolutionOf(feedId) === 'seconds' ? 1_000 : 1;
    if (before !== undefined && after !== undefined && after.validFromMs <= before.observationsMs + unitMs) {
      if (!options.dryRun)
        await takeStep(repair, 'reports', async (on) => {
          for (const row of group) if (isLostReport(row)) await takeOut(on, t, row);
        });
      continue;
    }
    const fromMs = Math.max(first.valid_from, (before?.observationsMs ?? -1) + 1);
    const key = `${feedId}/${first.observations}`;
    const range = { feedId, fromMs: Math.min(fromMs, first.observations), toMs: last.observations };
    lost.push({ table: 'reports', key, ...range, reports: group.length, what: 'its record is damaged' });
  }
};

/** A damaged row of a stream that has no others: which stream it was is not known. */
export const listUnknown = ({ lost }: PostgresRepair, { feed_id, observations }: KeyedRow): void =>
  void lost.push({
    ...nothingKnown,
    table: 'reports',
    key: `${feedIdOfBytes(feed_id)}/${observations}`,
    what: 'one report of an unknown stream',
  });

type HeadRow = { readonly feed_id: Buffer; readonly observations: number };

/** When each stream was last observed, of these streams and of those that the table names. */
export const repairHeads = async (repair: PostgresRepair, feedIds: ReadonlySet<FeedId>): Promise<void> => {
  const { run, t, tally, options } = repair;
  const heads = await run<HeadRow>(`SELECT feed_id, observations FROM ${t.heads}`);
  for (const feedId of new Set([...feedIds, ...heads.map(({ feed_id }) => feedIdOfBytes(feed_id))]))
    await takeStep(repair, 'reports', async (on) => {
      const bytes = feedBytes(feedId);
      const [newest] = await on<{ observations: number }>(
        `SELECT observations FROM ${t.reports} WHERE feed_id = $1::bytea AND ${notLost} ORDER BY observations DESC LIMIT 1`,
        [bytes],
      );
      const [head] = await on<HeadRow>(`SELECT feed_id, observations FROM ${t.heads} WHERE feed_id = $1::bytea`, [
        bytes,
      ]);
      if (head?.observations === newest?.observations) return;
      if (head !== undefined)
        putRowAside(repair, 'heads', feedId, { observations: head.observations }, 'it is not the newest report');
      tally.add('heads');
      if (options.dryRun) return;
      await on(`DELETE FROM ${t.heads} WHERE feed_id = $1::bytea`, [bytes]);
      if (newest !== undefined)
        await on(`INSERT INTO ${t.heads} (feed_id, observations) VALUES ($1::bytea, $2::bigint)`, [
          bytes,
          newest.observations,
        ]);
    });
};
