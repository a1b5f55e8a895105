// Owns the chain of the audit log: each entry's hash covers the entry and the hash before it.
import { createHash } from 'node:crypto';
import type { AuditEntry } from './store.ts';

/** SHA-256 over the entry's fields in a fixed order, hex. */
export const auditHash = (entry: Omit<AuditEntry, 'hash'>): string => {
  const { sequence, previousHash, atMs, actor, action, detail } = entry;
  return createHash('sha256')
    .update(JSON.stringify([sequence, previousHash, atMs, actor, action, detail]))
    .digest('hex');
};
