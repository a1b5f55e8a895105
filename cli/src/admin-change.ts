// Changes administrative records from the command line: computes the change first, for an exact entry in the audit log, and writes it only if
// the records did not change in the meantime.
import { isDeepStrictEqual } from 'node:util';
import type { Act, AdminKind, AdminRecords, AdminStore } from '@sealpost/server/store/store';
import { CommandError, exitCodes } from './failure.ts';
import type { Session } from './session.ts';

/** Who changes, and when. */
type Changer = Pick<Session, 'nowMs' | 'actor'>;

/** A record before and after a change. */
type RecordChange<K extends AdminKind> = {
  readonly key: string;
  readonly before: AdminRecords[K] | undefined;
  readonly after: AdminRecords[K];
};

/** How many records a change made, altered and left alone. */
export type ChangeSummary = { readonly added: number; readonly changed: number; readonly unchanged: number };

/** A change to plan: which records, what they become, and how the audit log calls it. */
export type ChangeOrder<K extends AdminKind> = {
  readonly kind: K;
  readonly keys: readonly string[];
  /** Maps the stored record of each key to its new one; may throw to change nothing. */
  readonly plan: (current: readonly (AdminRecords[K] | undefined)[]) => readonly AdminRecords[K][];
  /** Gets all records of the kind as they are when the change is written, and those that take their places; may throw to change nothing. */
  readonly check?: (all: readonly AdminRecords[K][], next: readonly AdminRecords[K][]) => void;
  readonly action: string;
  readonly detail?: Readonly<Record<string, unknown>>;
};

const attemptsMax = 3;

/** Changes records in one transaction with one audit entry. Nothing is written when nothing changes. */
export async function changeRecords<K extends AdminKind>(
  session: Changer,
  admin: AdminStore,
  order: ChangeOrder<K>,
): Promise<ChangeSummary> {
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const current = await Promise.all(order.keys.map((key) => admin.get(order.kind, key)));
    const next = order.plan(current);
    const all = next.map((after, i): RecordChange<K> => ({ key: order.keys[i] ?? '', before: current[i], after }));
    const changes = all.filter(({ before, after }) => !isDeepStrictEqual(before, after));
    if (changes.length === 0 || (await write(session, admin, order, changes))) return summarize(all.length, changes);
  }
  throw new CommandError(exitCodes.unavailable, 'Other processes are changing the same records. Try again.');
}

/** Writes the changes; false if a record changed since it was read. */
const write = async <K extends AdminKind>(
  session: Changer,
  admin: AdminStore,
  { kind, check, action, detail }: ChangeOrder<K>,
  changes: readonly RecordChange<K>[],
): Promise<boolean> => {
  const act: Act = {
    atMs: session.nowMs(),
    actor: session.actor(),
    action,
    detail: { ...detail, ...describeChanges(changes) },
  };
  const outdated = Symbol('outdated');
  const keys = changes.map(({ key }) => key);
  const next = changes.map(({ after }) => after);
  const replace = (current: readonly (AdminRecords[K] | undefined)[]) => {
    if (changes.some(({ before }, i) => !isDeepStrictEqual(before, current[i]))) throw outdated;
    return next;
  };
  try {
    await admin.update(kind, keys, replace, act, check && ((all) => check(all, next))); // a check reads all records
    return true;
  } catch (error) {
    if (error === outdated) return false;
    throw error;
  }
};

const summarize = <K extends AdminKind>(all: number, changes: readonly RecordChange<K>[]): ChangeSummary => {
  const added = changes.filter(({ before }) => before === undefined).length;
  return { added, changed: changes.length - added, unchanged: all - changes.length };
};

/** Changes for the audit log: new keys, and for each changed record its fields with old and new value. */
const describeChanges = <K extends AdminKind>(
  changes: readonly RecordChange<K>[],
): Readonly<Record<string, unknown>> => {
  const added = changes.filter(({ before }) => before === undefined).map(({ key }) => key);
  const changed = changes.flatMap(({ key, before, after }) =>
    before === undefined ? [] : [[key, changedFields(before, after)] as const],
  );
  return {
    ...(added.length === 0 ? {} : { added }),
    ...(changed.length === 0 ? {} : { changed: Object.fromEntries(changed) }),
  };
};

const changedFields = (before: object, after: object): Readonly<Record<string, readonly [unknown, unknown]>> => {
  const old = new Map<string, unknown>(Object.entries(before));
  return Object.fromEntries(
    Object.entries(after)
      .filter(([field, value]) => !isDeepStrictEqual(old.get(field), value))
      .map(([field, value]) => [field, [old.get(field) ?? null, value]]),
  );
};

/** The one-line result of an import. */
export const renderSummary = ({ added, changed, unchanged }: ChangeSummary): string =>
  `${added} added, ${changed} changed, ${unchanged} unchanged.\n`;
