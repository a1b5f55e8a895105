// Accounts as requests see them: opened secrets as key objects, and the streams that each may read. Built per account on first use, in memory
// only, and again when the records change. A secret that cannot be opened counts as absent (D150).
import type { FeedId } from '@sealpost/protocol';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Account } from '../store/store.ts';
import { bucketKeysOf, type Caller } from './authenticate.ts';
import { readableByAccount } from './entitlements.ts';
import { createHmacKey, type HmacKey } from './hmac.ts';
import type { SecretBox } from './secrets.ts';

/** A stored secret that could not be opened: no key for it, or it was altered. Its user is answered like an unknown one. */
export type SecretNotOpened = {
  readonly kind: 'secretNotOpened';
  readonly userId: string;
  readonly secretId: string;
  readonly error: unknown;
};

export type Callers = {
  /** An account that may ask, by user id in lower case; undefined when unknown, disabled or without an active secret that opens. */
  readonly callerOf: (userId: string) => Caller | undefined;
  /** The streams that it may read. */
  readonly readableOf: (userId: string) => ReadonlySet<FeedId>;
};

const nothing: ReadonlySet<FeedId> = new Set();

/** The account of an unknown user: looked up like any other, so that it takes as long. */
const nobody: Account = {
  userId: '',
  name: '',
  createdAt: '',
  disabledAt: '',
  secrets: [],
  entitlements: [],
  rateLimits: {},
};

/** A secret that could not be opened is tried again after this: between, its user costs no more than an unknown one. */
const tryAgainMs = 1_000;

/** An account as it was opened; `againMs` is when to try again what could not be. */
type Opened = { readonly caller: Caller | undefined; readonly againMs?: number };

/** Makes callers of the accounts in a view. `onNotOpened` is called for each secret that cannot be opened, at most once a second. */
export function createCallers(
  view: AdminView,
  box: SecretBox,
  onNotOpened: (event: SecretNotOpened) => void = () => {},
  monotonicMs: () => number = () => performance.now(),
): Callers {
  let callers = new Map<Account, Opened>();
  let readable = new Map<string, ReadonlySet<FeedId>>();
  view.onReload(() => {
    callers = new Map();
    readable = new Map();
  });
  return {
    callerOf: (userId) => {
      const account = view.current().accounts.get(userId) ?? nobody;
      const known = callers.get(account);
      if (known !== undefined && (known.againMs === undefined || monotonicMs() < known.againMs)) return known.caller;
      let isWhole = true;
      const caller = toCaller(account, box, (event) => {
        isWhole = false;
        onNotOpened(event);
      });
      callers.set(account, isWhole ? { caller } : { caller, againMs: monotonicMs() + tryAgainMs });
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
}

const toCaller = (
  { userId, disabledAt, secrets, rateLimits }: Account,
  box: SecretBox,
  onNotOpened: (event: SecretNotOpened) => void,
): Caller | undefined => {
  if (disabledAt !== null) return undefined;
  const opened = secrets
    .filter(({ revokedAt }) => revokedAt === null)
    .flatMap(({ id, sealed }): readonly { readonly id: string; readonly key: HmacKey }[] => {
      try {
        return [{ id, key: createHmacKey(Buffer.from(box.open(userId, sealed), 'utf8')) }];
      } catch (error) {
        onNotOpened({ kind: 'secretNotOpened', userId, secretId: id, error });
        return [];
      }
    });
  if (opened.length === 0) return undefined;
  return {
    userId,
    keys: opened.map(({ key }) => key),
    secretIds: opened.map(({ id }) => id),
    rateLimits,
    bucketKeys: bucketKeysOf(userId),
  };
};
