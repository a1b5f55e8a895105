// Owns accounts as requests see them: secrets unsealed into key objects, what each may read. Made anew when the records change,
// one account at a time as it is asked for, and kept in memory only.
import type { FeedId } from '@sealpost/protocol';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Account } from '../store/store.ts';
import { bucketKeysOf, type Caller } from './authenticate.ts';
import { readableByAccount } from './entitlements.ts';
import { createHmacKey } from './hmac.ts';
import type { SecretBox } from './secrets.ts';

export type Callers = {
  /** An account that may ask, by user id in lower case; undefined when unknown, disabled or without an active secret. */
  readonly callerOf: (userId: string) => Caller | undefined;
  /** The streams that it may read. */
  readonly readableOf: (userId: string) => ReadonlySet<FeedId>;
};

const nothing: ReadonlySet<FeedId> = new Set();

export const createCallers = (view: AdminView, box: SecretBox): Callers => {
  let callers = new Map<string, Caller>();
  let readable = new Map<string, ReadonlySet<FeedId>>();
  view.onReload(() => {
    callers = new Map();
    readable = new Map();
  });
  return {
    callerOf: (userId) => {
      const known = callers.get(userId);
      if (known !== undefined) return known;
      const account = view.current().accounts.get(userId);
      const caller = account && toCaller(account, box);
      if (caller !== undefined) callers.set(userId, caller);
      return caller;
    },
    readableOf: (userId) => {
      const known = readable.get(userId);
      if (known !== undefined) return known;
      const { accounts, streams } = view.current();
      const account = accounts.get(userId);
      const streamsOf = account === undefined ? nothing : readableByAccount(account, streams);
      readable.set(userId, streamsOf);
      return streamsOf;
    },
  };
};

const toCaller = ({ userId, disabledAt, secrets, rateLimits }: Account, box: SecretBox): Caller | undefined => {
  const active = secrets.filter(({ revokedAt }) => revokedAt === null);
  if (disabledAt !== null || active.length === 0) return undefined;
  return {
    userId,
    keys: active.map(({ sealed }) => createHmacKey(Buffer.from(box.open(userId, sealed), 'utf8'))),
    secretIds: active.map(({ id }) => id),
    rateLimits,
    bucketKeys: bucketKeysOf(userId),
  };
};
