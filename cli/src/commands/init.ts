// The command `sealpost init`: a store and a key-encryption key, where they are not there yet.
import { existsSync } from 'node:fs';
import { activeSecrets, requireSameKey } from '@sealpost/server/access/account-changes';
import { createKeyFile, openSecretBox } from '@sealpost/server/access/key';
import { SecretBoxError } from '@sealpost/server/access/secrets';
import type { Settings } from '@sealpost/server/config/config';
import { hidePassword } from '@sealpost/server/runtime/urls';
import type { Account, Store } from '@sealpost/server/store/store';
import type { SettingsCommand } from '../command.ts';
import type { Session } from '../session.ts';
import { storeExists } from '../store-access.ts';

/** What init found and made. */
type Initialized = {
  readonly store: string;
  readonly storeCreated: boolean;
  /** Null if the key is a setting. */
  readonly keyFile: string | null;
  readonly keyCreated: boolean;
  readonly keyId: string;
};

export const initCommand: SettingsCommand = {
  name: 'init',
  summary: 'Create the store, and the key file that seals secrets. Existing ones are kept.',
  options: [{ flag: '--json', help: 'print what was created as one line of JSON' }],
  settings: ['store', 'keyFile'],
  examples: [
    ['Create a store in ./data', 'sealpost init'],
    ['Keep the key apart from the store', 'sealpost init --store /var/lib/sealpost --key-file /etc/sealpost/key'],
  ],
  run: async ({ session, settings, withNewStore, print }) => {
    const storeCreated = !(await storeExists(settings.store));
    const done = await withNewStore((store) => prepareKey(session, store, settings, storeCreated));
    await print(done, await session.hint(render(done)));
  },
};

const prepareKey = async (
  session: Session,
  { admin }: Store,
  values: Settings,
  storeCreated: boolean,
): Promise<Initialized> => {
  const { store, key } = values;
  const keyFile = key === undefined ? values.keyFile : null;
  const accounts = await admin.list('account');
  if (keyFile !== null) requireNoLostKey(keyFile, accounts);
  const keyCreated = keyFile !== null && createKeyFile(keyFile);
  const box = openSecretBox(values);
  requireSameKey(accounts, box);
  const made = { storeCreated, keyFile, keyCreated, keyId: box.keyId };
  const act = { atMs: session.nowMs(), actor: session.actor(), action: 'init', detail: made };
  if (storeCreated || keyCreated) await admin.log(act);
  return { store: hidePassword(store), ...made };
};

// A new key could not open what the old one sealed: every account would be silently locked out.
const requireNoLostKey = (keyFile: string, accounts: readonly Account[]): void => {
  const sealed = accounts.find((account) => activeSecrets(account).length > 0);
  if (sealed === undefined || existsSync(keyFile)) return;
  const text = `${keyFile} does not exist, but the secrets of ${sealed.name} are sealed with a key. Restore that key file, or set --key-file.`;
  throw new SecretBoxError(text);
};

const render = ({ store, storeCreated, keyFile, keyCreated, keyId }: Initialized): string => {
  const place = keyFile === null ? 'is set by SEALPOST_KEY' : `already exists in ${keyFile}`;
  return [
    storeCreated ? `Store ${store} created.` : `Store ${store} already exists; unchanged.`,
    keyCreated ? `Key ${keyId} created in ${keyFile}.` : `Key ${keyId} ${place}; unchanged.`,
    'Back up the key separately from the store: without it, no stored secret can be used.',
    '',
    'Next steps, with catalog.json and signers.json of your oracle network instead of a simulated one:',
    '',
    '  sealpost simulate --from -1m --out .',
    '  sealpost stream import catalog.json',
    '  sealpost signers import signers.json',
    '  sealpost account create --name NAME --entitle public',
    '  sealpost serve',
    '',
  ].join('\n');
};
