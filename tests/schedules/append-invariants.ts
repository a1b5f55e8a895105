// What must hold of a database that nodes append to, and of what they show.
import type { FeedId } from '@sealpost/protocol';
import { decodeReport, feedBytes, feedIdOfBytes, keyBytes } from '../../server/src/store/postgres/rows.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import type { Committed, Row } from './database/tables.ts';
import { streams } from './sample-reports.ts';
import { Violation } from './schedule.ts';

export const keyOf = ({ feedId, observationsMs }: Pick<StoredReport, 'feedId' | 'observationsMs'>): string =>
  `${streams.indexOf(feedId as (typeof streams)[number])}@${observationsMs}`; // every stream is one of them

/** What was promised: reports by their keys. */
export type Promised = ReadonlyMap<string, StoredReport>;

/** Every promised report is stored, byte for byte. */
export const checkPromised = (committed: Committed, promised: Promised): void => {
  for (const [key, report] of promised) {
    const row = committed.reports.get(`${feedBytes(report.feedId).toString('hex')}/${report.observationsMs}`);
    if (row === undefined) throw new Violation('acknowledged report lost', key);
    const { valid_from, record, observations } = row as { valid_from: number; record: Buffer; observations: number }; // as statements store it
    const { fullReport } = decodeReport(report.feedId, { valid_from, record, observations });
    if (Buffer.compare(fullReport, report.fullReport) !== 0) throw new Violation('acknowledged report altered', key);
  }
};

const numberOf = (row: Row, column: string): number => Number(row[column]);

/** Windows of a stream do not overlap, and its newest is known. */
export const checkWindows = (committed: Committed): void => {
  for (const stream of streams) {
    const feed = feedBytes(stream).toString('hex');
    const rows = [...committed.reports.values()].filter((row) => row.feed === feed);
    rows.sort((a, b) => numberOf(a, 'observations') - numberOf(b, 'observations'));
    for (const [i, row] of rows.entries()) {
      const before = rows[i - 1];
      if (before !== undefined && numberOf(row, 'valid_from') <= numberOf(before, 'observations'))
        throw new Violation('windows overlap', `${feed.slice(-2)} at ${row.observations}`);
    }
    const newest = rows.at(-1);
    const head = committed.heads.get(feed);
    if (newest !== undefined && head?.observations !== newest.observations)
      throw new Violation(
        'newest report unknown',
        `${feed.slice(-2)}: ${head?.observations}, not ${newest.observations}`,
      );
  }
};

/** The meaning of each position, in order; positions have no gaps, and every report has one. */
export const readPositions = (committed: Committed): readonly string[] => {
  const batches = [...committed.appended.values()];
  batches.sort((a, b) => numberOf(a, 'last_position') - numberOf(b, 'last_position'));
  const meanings: string[] = [];
  for (const batch of batches) {
    const first = numberOf(batch, 'first_position');
    if (first !== meanings.length + 1) throw new Violation('positions have a gap', `${first} after ${meanings.length}`);
    const keys = batch.keys as Buffer; // as statements store it
    for (let at = 4; at < keys.length; at += keyBytes)
      meanings.push(
        keyOf({ feedId: feedIdOfBytes(keys.subarray(at, at + 32)), observationsMs: keys.readUIntBE(at + 34, 6) }),
      );
  }
  if (new Set(meanings).size !== meanings.length) throw new Violation('a report has two positions', meanings.join(' '));
  if (meanings.length !== committed.reports.size)
    throw new Violation('a report has no position', `${committed.reports.size} reports, ${meanings.length} positions`);
  if (numberOf(committed.counters.get('position') as Row, 'value') !== meanings.length)
    // there from the start
    throw new Violation('the position counter is wrong', `${committed.counters.get('position')?.value}`);
  return meanings;
};

/** What a position was seen to mean, at any node. */
export const createMeanings = () => {
  const seen = new Map<number, string>();
  return {
    see: (position: number, key: string): void => {
      const known = seen.get(position);
      if (known !== undefined && known !== key)
        throw new Violation('a position has two meanings', `${position}: ${known} and ${key}`);
      seen.set(position, key);
    },
    compare: (meanings: readonly string[]): void => {
      for (const [position, key] of seen)
        if (meanings[position - 1] !== key)
          throw new Violation(
            'a position has two meanings',
            `${position}: ${key} was seen, ${meanings[position - 1]} is stored`,
          );
    },
  };
};

/** `latest` of one node, over all its processes. */
export const createLatestWatch = (node: number) => {
  const newest = new Map<FeedId, number>();
  const see = (feedId: FeedId, observationsMs: number | undefined): void => {
    const known = newest.get(feedId);
    if (known !== undefined && (observationsMs ?? 0) < known)
      throw new Violation('latest went back', `node ${node}: from ${known} to ${observationsMs}`);
    if (observationsMs !== undefined) newest.set(feedId, observationsMs);
  };
  return { see, forget: () => newest.clear() };
};
