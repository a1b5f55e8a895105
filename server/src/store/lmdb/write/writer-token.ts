// Fences off a replaced writer: a writer stores its token in both environments when it starts, and every transaction compares it. Lock files can be
// removed and suspended processes resume, but a transaction of a replaced writer changes nothing (D136).
import type { DamageLog } from '../../damage.ts';
import { decodeKeyedRecord, encodeKeyedRecord } from '../../format/record.ts';
import { CorruptRecordError, StoreError } from '../../store.ts';
import { type Environment, openTable } from '../environment.ts';

/** Who writes, for this life of the process. */
export type WriterToken = { readonly token: string; readonly pid: number; readonly takenAt: string };

/** The table that holds the place, and what is written to try whether writing works. */
export const writerTokenTable = 'writer';
const placeKey = Buffer.from('place');
const probeKey = Buffer.from('probe');

/**
 * Takes the place from its holder; `act` runs in the same transaction, before, and may throw. Damaged records are noted, and the table
 * is cleared: under a damaged key a record would stay forever.
 */
export function takeWriterToken(
  environment: Environment,
  place: WriterToken,
  damage: DamageLog,
  act: () => void = () => {},
): void {
  const table = openTable(environment, writerTokenTable);
  environment.root.transactionSync(() => {
    act();
    for (const { key, value } of table.getRange()) {
      const name = key.toString();
      damage.contain({ table: writerTokenTable, key: name }, () =>
        decodeKeyedRecord(key, value, `${name} of the writer`),
      );
    }
    table.clearSync();
    table.put(placeKey, encodeKeyedRecord(placeKey, place));
  });
}

/** From now on every transaction of this environment throws once another writer has taken the place. */
export function holdWriterToken(environment: Environment, place: WriterToken): void {
  const table = openTable(environment, writerTokenTable);
  const mine = encodeKeyedRecord(placeKey, place);
  environment.guardWith(() => {
    const stored = table.get(placeKey);
    if (stored?.equals(mine)) return;
    const other = stored && decodePlace(stored);
    if (other === undefined)
      table.put(placeKey, mine); // damaged: another writer that takes the place rewrites it
    else if (other.token !== place.token) throw takenOver(environment.folder, other);
  });
}

const parsePlace = (value: Buffer): WriterToken =>
  decodeKeyedRecord<WriterToken>(placeKey, value, 'the place of the writer');

const decodePlace = (value: Buffer): WriterToken | undefined => {
  try {
    return parsePlace(value);
  } catch (error) {
    if (error instanceof CorruptRecordError) return undefined;
    throw error;
  }
};

const takenOver = (folder: string, { pid, takenAt }: WriterToken) =>
  new StoreError(
    'store_taken_over',
    `Process ${pid} took over writing to ${folder} at ${takenAt}; this process stopped writing. Only one may write: stop this one, or stop the other and restart this one.`,
  );

/** A small durable transaction, to see whether writing works. */
export function probeWriting(environment: Environment): void {
  const table = openTable(environment, writerTokenTable);
  const probe = encodeKeyedRecord(probeKey, { at: new Date().toISOString(), pid: process.pid });
  environment.root.transactionSync(() => table.put(probeKey, probe));
}
