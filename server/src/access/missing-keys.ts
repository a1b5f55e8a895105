// Finds accounts that this node cannot authenticate because it lacks the key of their secrets. /readyz lists them before any of them asks.
import type { AdminView } from '../store/admin-snapshot.ts';
import { activeSecrets } from './account-changes.ts';
import type { SecretBox } from './secrets.ts';

/** Makes the look: a sentence for each key that is missing, none when all are there. Accounts are looked through once for each change. */
export const createMissingKeys = (view: Pick<AdminView, 'current'>, box: SecretBox): (() => readonly string[]) => {
  let seen: { readonly snapshot: unknown; readonly sealedBy: ReadonlyMap<string, number> } | undefined;
  return () => {
    const snapshot = view.current();
    if (seen?.snapshot !== snapshot) seen = { snapshot, sealedBy: countByKey(snapshot.accounts.values()) };
    const keyIds = box.keyIds();
    return [...seen.sealedBy]
      .filter(([keyId]) => !keyIds.includes(keyId))
      .map(([keyId, count]) => `secrets: ${count} active, sealed by key ${keyId}, which this node does not have`);
  };
};

type Accounts = Iterable<Parameters<typeof activeSecrets>[0]>;

const countByKey = (accounts: Accounts): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  for (const account of accounts)
    for (const { sealed } of activeSecrets(account)) {
      const [keyId = ''] = sealed.split('.', 1);
      counts.set(keyId, (counts.get(keyId) ?? 0) + 1);
    }
  return counts;
};
