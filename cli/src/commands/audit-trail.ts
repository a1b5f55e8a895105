// Walking along the audit log and checking its chain: every entry's hash, number and link to the one before.
import { auditHash } from '@sealpost/server/store/audit-chain';
import { type AdminStore, type AuditEntry, CorruptRecordError } from '@sealpost/server/store/store';

/** The verdict on a log: how many entries hold, the last of them, and the first that does not. */
export type AuditVerdict = {
  readonly entries: number;
  readonly last: { readonly sequence: number; readonly hash: string } | null;
  readonly altered: { readonly sequence: number; readonly what: string } | null;
};

const pageEntries = 500;

/** Reads the log from its beginning, page by page. */
export async function* readAudit(admin: AdminStore): AsyncGenerator<readonly AuditEntry[]> {
  let after = 0;
  for (;;) {
    const page = await readPage(admin, after);
    if (page.length === 0) return;
    yield page;
    after = page.at(-1)?.sequence ?? after;
  }
}

// A page with an unreadable entry fails as a whole: read singly, the entries before it can still be judged.
const readPage = async (admin: AdminStore, after: number): Promise<readonly AuditEntry[]> => {
  try {
    return await admin.auditAfter(after, pageEntries);
  } catch (error) {
    if (!(error instanceof CorruptRecordError)) throw error;
    return admin.auditAfter(after, 1);
  }
};

/** Checks the chain up to the first entry that breaks it. Entries cut off the end leave no trace: compare with a `last` noted before. */
export async function verifyAudit(pages: AsyncIterable<readonly AuditEntry[]>): Promise<AuditVerdict> {
  let last: AuditEntry | undefined;
  const verdict = (what?: string): AuditVerdict => ({
    entries: last?.sequence ?? 0,
    last: last === undefined ? null : { sequence: last.sequence, hash: last.hash },
    altered: what === undefined ? null : { sequence: (last?.sequence ?? 0) + 1, what },
  });
  try {
    for await (const page of pages) {
      for (const entry of page) {
        const what = faultOf(entry, last);
        if (what !== undefined) return verdict(what);
        last = entry;
      }
    }
  } catch (error) {
    if (error instanceof CorruptRecordError) return verdict(error.message);
    throw error;
  }
  return verdict();
}

const faultOf = (entry: AuditEntry, previous: AuditEntry | undefined): string | undefined => {
  if (entry.sequence !== (previous?.sequence ?? 0) + 1) return `it is missing; the next entry is ${entry.sequence}`;
  if (entry.previousHash !== (previous?.hash ?? '')) return 'it does not link to the previous entry';
  return auditHash(entry) === entry.hash ? undefined : 'its content does not match its hash';
};
