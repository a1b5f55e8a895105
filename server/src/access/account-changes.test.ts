import { expect, test } from 'vitest';
import type { Account } from '../store/store.ts';
import {
  activeSecrets,
  addSecret,
  needsRewrap,
  requireOpeningKey,
  requireSameKey,
  revokeSecret,
  rewrapAccount,
  showAccount,
  switchAccount,
} from './account-changes.ts';
import { createSecretBox } from './secrets.ts';

const nowMs = 1_763_200_000_000;
const [old, fresh, third] = [1, 2, 3].map((n) => createSecretBox(Buffer.alloc(32, n))) as [
  ReturnType<typeof createSecretBox>, // a map over three makes three
  ReturnType<typeof createSecretBox>,
  ReturnType<typeof createSecretBox>,
];
const userId = '123e4567-e89b-42d3-a456-426614174000';
const bare: Account = {
  userId,
  name: 'acme',
  createdAt: '2026-01-01T00:00:00.000000Z',
  disabledAt: null,
  secrets: [],
  entitlements: [],
  rateLimits: {},
};
const give = (account: Account, id: string) => addSecret(account, id, old.seal(userId, `secret ${id}`), nowMs);
const ids = (account: Account) => activeSecrets(account).map(({ id }) => id);

test('account: it has at most two active secrets, and the error names them and what to do', () => {
  const two = give(give(bare, 'a'), 'b');
  expect(() => give(two, 'c')).toThrow(
    `acme has 2 active secrets, a and b. First revoke one with: sealpost secret revoke ${userId} SECRET_ID.`,
  );
  expect(ids(give(revokeSecret(two, 'a', nowMs), 'c'))).toEqual(['b', 'c']);
});

test('account: a revoked secret keeps its dates and loses its sealed text, for good', () => {
  const revoked = revokeSecret(give(bare, 'a'), 'a', nowMs);
  const dated = { id: 'a', createdAt: '2025-11-15T09:46:40.000000Z', revokedAt: '2025-11-15T09:46:40.000000Z' };
  expect(revoked.secrets).toEqual([{ ...dated, sealed: '' }]);
  expect(showAccount(revoked).secrets).toEqual([dated]);
  expect(() => revokeSecret(revoked, 'a', nowMs)).toThrow('a was revoked at 2025-11-15T09:46:40.000000Z');
  expect(() => revokeSecret(revoked, 'b', nowMs)).toThrow(
    'b is not a secret of acme. List its secrets with: sealpost account show',
  );
});

test('account: of many revoked secrets the newest are remembered', () => {
  let account = give(bare, 'kept');
  for (let i = 0; i < 50; i++) account = revokeSecret(give(account, `s${i}`), `s${i}`, nowMs);
  expect([account.secrets.length, account.secrets[0]?.id, account.secrets.at(-1)?.id]).toEqual([20, 'kept', 's49']);
});

test('account: disabling twice keeps the first date, enabling clears it', () => {
  const off = switchAccount(bare, false, nowMs);
  expect(switchAccount(off, false, nowMs + 1_000)).toEqual(off);
  expect([off.disabledAt, switchAccount(off, true, nowMs)]).toEqual(['2025-11-15T09:46:40.000000Z', bare]);
});

test('account: active secrets move to another key, can be moved again without harm, and no third key opens them', () => {
  const account = give(revokeSecret(give(bare, 'a'), 'a', nowMs), 'b');
  const moved = rewrapAccount(account, old, fresh);
  expect([needsRewrap(account, fresh), needsRewrap(moved, fresh), needsRewrap(bare, fresh)]).toEqual([
    true,
    false,
    false,
  ]);
  expect(activeSecrets(moved).map(({ sealed }) => fresh.open(userId, sealed))).toEqual(['secret b']);
  expect(moved.secrets[0]).toEqual(account.secrets[0]);
  expect(rewrapAccount(moved, old, fresh)).toEqual(moved);
  expect(() => rewrapAccount(moved, old, third)).toThrow(
    `sealed with key ${fresh.keyId}, but this key is ${old.keyId}`,
  );
});

test('account: a key other than that of the accounts is rejected before it seals anything', () => {
  const account = give(bare, 'a');
  expect(requireSameKey([bare, account], old)).toBeUndefined();
  expect(() => requireSameKey([bare, account], fresh)).toThrow(
    `The secrets of acme are sealed with another key than this one (${fresh.keyId}).`,
  );
});

test('account: a server needs a key that opens every active secret; revoked ones do not count', () => {
  const account = addSecret(bare, 'one', old.seal(userId, 's'), nowMs);
  expect(requireOpeningKey([bare, account], old)).toBeUndefined();
  expect(() => requireOpeningKey([bare, account], fresh)).toThrow(`A secret was sealed with key ${old.keyId}`);
  expect(requireOpeningKey([revokeSecret(account, 'one', nowMs)], fresh)).toBeUndefined();
});
