// The chain of the audit log: each entry's hash covers the entry and the hash before it.
import { createHash } from 'node:crypto';
import { type AuditEntry, CorruptRecordError, type DamagedAuditEntry, StoreError } from './store.ts';

/** SHA-256 over the entry's fields in a fixed order, hex. */
export function auditHash(entry: Omit<AuditEntry, 'hash'>): string {
  const { sequence, previousHash, atMs, actor, action, detail } = entry;
  return createHash('sha256')
    .update(JSON.stringify([sequence, previousHash, atMs, actor, action, detail]))
    .digest('hex');
}

type LastEntry = Pick<AuditEntry, 'sequence' | 'hash'> | undefined;

/** Is an entry intact, and the next one of a log? */
export const continuesLog = (last: LastEntry, entry: AuditEntry): boolean =>
  entry.sequence === (last?.sequence ?? 0) + 1 &&
  entry.previousHash === (last?.hash ?? '') &&
  entry.hash === auditHash(entry);

/** Throws unless entries continue a log. */
export function requireChain(last: LastEntry, entries: readonly AuditEntry[]): void {
  let before = last;
  for (const entry of entries) {
    if (!continuesLog(before, entry))
      throw new StoreError(
        'store_write_failed',
        `Audit entry ${entry.sequence} does not continue the log of the target.`,
      );
    before = entry;
  }
}

/** An entry, or what is wrong with it. */
export function readAuditEntry(sequence: number, decode: () => AuditEntry): AuditEntry | DamagedAuditEntry {
  try {
    return decode();
  } catch (error) {
    if (error instanceof CorruptRecordError) return { sequence, damaged: error.message };
    throw error;
  }
}
