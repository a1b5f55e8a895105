// The log of corrupt records: noted where records are read, reported once each, listed for probes and checks (D120).
import { CorruptRecordError, type Damage } from './store.ts';

/** What depends on a record of each table. */
const dependents: Readonly<Record<string, string>> = {
  runs: 'up to 63 reports of the stream, until this moment',
  reports: 'one report',
  candles: 'one minute of the stream’s candles',
  hourCandles: 'one hour of the stream’s candles, which is read from its minutes',
  dayCandles: 'one day of the stream’s candles, which is read from its hours',
  appended: 'event streams that resume before these positions',
  quarantine: 'one quarantined line',
  numbers: 'all reports of one stream',
  feedIds: 'all reports of one stream',
  heads: 'the newest report of the stream',
  partitions: 'retention, and the counts of sealpost store stats',
  lineage: 'the IDs of events: each client catches up once',
  'meta format': 'the release that may open the store',
  'meta lineage': 'the IDs of events: each client catches up once',
  'meta counters': 'the counts of sealpost store stats',
  'meta position': 'event streams that resume',
  counters: 'event streams that resume',
  'records account': 'the access of one account',
  'records stream': 'one stream: it is neither served nor ingested',
  'records signerSet': 'the ingest of reports that this signer set signed',
  'records mirror': 'where sealpost follow resumes one stream',
  audit: 'the proof that the audit log is complete',
  usage: 'the usage of one account and route on one day',
  secretUses: 'when one secret was last used',
  retention: 'how long reports are kept: the longest retention that a node announces applies at once',
};

/** What depends on a record, to help an operator decide what to do. */
export const dependentsOf = (table: string, key: string): string =>
  dependents[table] ?? dependents[`${table} ${key.split('/', 1)[0]}`] ?? 'unknown';

export type DamageLog = {
  /** Notes damage; each record is reported once. */
  readonly note: (damage: Damage) => void;
  readonly list: () => readonly Damage[];
  /** Runs `read`; a corrupt record is noted and becomes undefined. */
  readonly contain: <T>(place: Omit<Damage, 'reason'>, read: () => T) => T | undefined;
};

/** As a damage log, for a copy of the store: a damaged record is noted and fails the read, because the store itself may have it intact. */
export const failingOnDamage = (log: DamageLog): DamageLog => ({
  ...log,
  contain: (place, read) => {
    try {
      return read();
    } catch (error) {
      if (error instanceof CorruptRecordError) log.note({ ...place, reason: `${error.message}, in a read store` });
      throw error;
    }
  },
});

/** Records remembered at most; a store with more of them needs a repair, not a longer list. */
const damageMax = 1_000;

/** Calls `tell` once for each corrupt record, with the number known so far. */
export function createDamageLog(tell: (damage: Damage, total: number) => void = () => {}): DamageLog {
  const known = new Map<string, Damage>();
  const note = (damage: Damage): void => {
    const name = `${damage.table} ${damage.key}`;
    if (known.has(name) || known.size >= damageMax) return;
    known.set(name, damage);
    tell(damage, known.size);
  };
  return {
    note,
    list: () => [...known.values()],
    contain: (place, read) => {
      try {
        return read();
      } catch (error) {
        if (!(error instanceof CorruptRecordError)) throw error;
        note({ ...place, reason: error.message });
        return undefined;
      }
    },
  };
}
