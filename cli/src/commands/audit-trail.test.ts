import { auditHash } from '@sealpost/server/store/audit-chain';
import { type AuditEntry, CorruptRecordError } from '@sealpost/server/store/store';
import { expect, test } from 'vitest';
import { countOf, seedOf, tally } from '../../../tests/support/full-count.ts';
import { verifyAudit } from './audit-trail.ts';

/** A sound log of so many entries. */
const createLog = (length: number): AuditEntry[] => {
  const log: AuditEntry[] = [];
  for (let sequence = 1; sequence <= length; sequence++) {
    const previousHash = log.at(-1)?.hash ?? '';
    const entry = {
      sequence,
      previousHash,
      atMs: sequence,
      actor: 'cli:a@b',
      action: 'stream.set',
      detail: { sequence },
    };
    log.push({ ...entry, hash: auditHash(entry) });
  }
  return log;
};

async function* pagesOf(entries: readonly AuditEntry[], failure?: Error): AsyncGenerator<readonly AuditEntry[]> {
  for (let i = 0; i < entries.length; i += 500) yield entries.slice(i, i + 500);
  if (failure) throw failure;
}

const change = (log: readonly AuditEntry[], index: number, changes: Partial<AuditEntry>) =>
  log.map((entry, i) => (i === index ? { ...entry, ...changes } : entry));

test('audit: an unaltered log verifies, and its last entry is reported', async () => {
  const log = createLog(3);
  const last = { sequence: 3, hash: log[2]?.hash };
  expect(await verifyAudit(pagesOf(log))).toEqual({ entries: 3, last, altered: null });
  expect(await verifyAudit(pagesOf([]))).toEqual({ entries: 0, last: null, altered: null });
});

test('audit: the first altered entry is reported', async () => {
  const log = createLog(4);
  const altered = async (entries: readonly AuditEntry[]) => (await verifyAudit(pagesOf(entries))).altered;
  expect(await altered(change(log, 1, { actor: 'someone else' }))).toEqual({
    sequence: 2,
    what: 'its content does not match its hash',
  });
  const rehashed = { ...(log[1] as AuditEntry), actor: 'someone else' };
  expect(await altered(change(log, 1, { ...rehashed, hash: auditHash(rehashed) }))).toEqual({
    sequence: 3,
    what: 'it does not link to the previous entry',
  });
  expect(await altered(log.toSpliced(1, 1))).toEqual({ sequence: 2, what: 'it is missing; the next entry is 3' });
});

const tamperings = countOf(12, 1_000);

/** One way to alter an entry, by a number. */
const tamper = (log: readonly AuditEntry[], index: number, way: number): readonly AuditEntry[] => {
  const entry = log[index] as AuditEntry; // within the log
  const rehash = (changed: AuditEntry): AuditEntry => ({ ...changed, hash: auditHash(changed) });
  const changed: readonly AuditEntry[][] = [
    [],
    [{ ...entry, actor: `${entry.actor}x` }],
    [{ ...entry, atMs: entry.atMs + 1 }],
    [{ ...entry, detail: { sequence: -1 } }],
    [rehash({ ...entry, action: 'account.set' })],
    [entry, entry],
  ];
  return log.toSpliced(index, 1, ...(changed[way % changed.length] ?? []));
};

test(`audit: ${tamperings} logs of which one entry was altered, removed or repeated are all found`, async () => {
  const log = createLog(10_000);
  let [missed, seed] = [0, seedOf()];
  for (let i = 0; i < tamperings; i++) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    const index = Math.floor((seed / 2 ** 32) * (log.length - 1)); // nothing follows the last entry: whoever compares its hash with one noted before finds that out
    const { altered } = await verifyAudit(pagesOf(tamper(log, index, i)));
    const sequence = altered?.sequence ?? 0;
    if (sequence < index + 1 || sequence > index + 2) missed += 1; // entries count from 1; one with a new hash is found by the next
  }
  tally({ 'alterations missed': missed });
  expect(missed).toBe(0);
});

test('audit: an entry that cannot be read is the first altered one', async () => {
  const log = createLog(2);
  const failure = new CorruptRecordError('audit entry 3 does not match its checksum');
  expect((await verifyAudit(pagesOf(log, failure))).altered).toEqual({ sequence: 3, what: failure.message });
});
