// Announces which keys a running node has, so that `secret rewrap` does not use a key that some node lacks (D150), and its retention (D240).
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { within } from '../runtime/deadline.ts';
import { createFailureState } from '../runtime/failure-state.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { KeyHolders, RetentionLimits } from '../store/nodes.ts';
import { activeSecrets } from './account-changes.ts';
import type { SecretBox } from './secrets.ts';

const everyMs = 1_000;
const withdrawMaxMs = 1_000;

/** Announces now and every second until stopped. Calls `onTrouble` once per run of failures. */
export function announceKeys(
  holders: KeyHolders,
  box: SecretBox,
  onTrouble: (error: unknown) => void,
  retention?: RetentionLimits,
): () => Promise<void> {
  // Containers may have the same host name, and each a process 1: the ID keeps their announcements apart.
  const node = `${hostname()}, process ${process.pid}, ID ${randomBytes(6).toString('hex')}`;
  const state = createFailureState<Error>({ began: onTrouble });
  let underWay: Promise<void> | undefined;
  const announce = async (): Promise<void> => {
    try {
      await holders.announce({ node, keyIds: box.keyIds(), retention });
      state.worked();
    } catch (error) {
      state.failed(error as Error); // of the store
    }
  };
  const say = (): void => {
    underWay ??= announce().finally(() => {
      underWay = undefined;
    });
  };
  say();
  const timer = setInterval(say, everyMs).unref();
  return async () => {
    clearInterval(timer);
    // An announcement that cannot be withdrawn, because the disk or database does not answer, expires within seconds.
    const withdraw = async (): Promise<void> => {
      await underWay;
      await holders.withdraw(node);
    };
    await within(withdrawMaxMs, withdraw()).catch(() => {});
  };
}

/** Makes the look: a sentence for each key that is missing, none when all are there. Accounts are looked through once for each change. */
export function createMissingKeys(view: Pick<AdminView, 'current'>, box: SecretBox): () => readonly string[] {
  let seen: { readonly snapshot: unknown; readonly sealedBy: ReadonlyMap<string, number> } | undefined;
  return () => {
    const snapshot = view.current();
    if (seen?.snapshot !== snapshot) seen = { snapshot, sealedBy: countByKey(snapshot.accounts.values()) };
    const keyIds = box.keyIds();
    return [...seen.sealedBy]
      .filter(([keyId]) => !keyIds.includes(keyId))
      .map(([keyId, count]) => `secrets: ${count} active, sealed by key ${keyId}, which this node does not have`);
  };
}

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
