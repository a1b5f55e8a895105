// Where credentials stay while the page reloads: in the tab, or on the device if the user chooses. Tabs of the same server hand them to a new tab.
import type { Credentials } from '@sealpost/client';
import type { Platform } from './platform.ts';

/** Where credentials are: only in this page (storage is blocked), in this tab, or on this device. */
export type CredentialLocation = 'page' | 'tab' | 'device';

/** Credentials that were found, and whether they are remembered on the device. */
export type StoredCredentials = { readonly given: Credentials; readonly remember: boolean };

export type CredentialStore = {
  /** What this tab or this device has. */
  readonly read: () => StoredCredentials | undefined;
  /** Asks other tabs; undefined at once if none can be signed in. Resolves when one answers, if ever, unless this tab has credentials by then. */
  readonly ask: () => Promise<StoredCredentials> | undefined;
  readonly write: (given: Credentials, remember: boolean) => CredentialLocation;
  /** Removes them here and on the device. */
  readonly remove: () => void;
  /** The same, and in all other tabs. */
  readonly removeEverywhere: () => void;
};

const storageKey = 'sealpost-session';
/** On the device while a tab is signed in; holds no secret. A new tab asks the others only then. */
const signedInKey = 'sealpost-signed-in';
const channelName = 'sealpost-session';
type Message = { readonly kind: 'ask' | 'signedOut' } | { readonly kind: 'have'; readonly found: StoredCredentials };

/** `onSignedOut` is called when the user signs out in another tab. */
export function createCredentialStore(platform: Platform, onSignedOut: () => void): CredentialStore {
  let current: StoredCredentials | undefined;
  let isOwed = false; // another tab asked while this one had nothing yet
  let stopAsking = (): void => {};
  const channel = openChannel(platform);
  const answer = (): void => {
    isOwed = current === undefined;
    if (channel !== undefined && current !== undefined) send(channel, { kind: 'have', found: current });
  };
  channel?.addEventListener('message', ({ data }: MessageEvent) => {
    const { kind } = Object(data);
    if (kind === 'ask') answer();
    if (kind === 'signedOut' && current !== undefined) onSignedOut();
  });
  const stores = [() => platform.sessionStorage, () => platform.localStorage] as const;
  const [tab, device] = stores.map(createSafeStorage) as [SafeStorage, SafeStorage]; // two in the list
  const remove = (): void => {
    current = undefined;
    stopAsking();
    tab.set(storageKey, undefined);
    device.set(storageKey, undefined);
    device.set(signedInKey, undefined);
  };
  return {
    read: () => {
      const remembered = parseCredentials(device.get(storageKey));
      const given = parseCredentials(tab.get(storageKey)) ?? remembered;
      return given && { given, remember: remembered !== undefined };
    },
    ask: () => {
      if (device.get(signedInKey) === null || channel === undefined) return undefined;
      const { answered, stop } = askOthers(channel);
      stopAsking = stop;
      return answered;
    },
    write: (given, remember) => {
      current = { given, remember };
      stopAsking();
      if (isOwed) answer();
      const text = JSON.stringify(given);
      if (!remember) device.set(storageKey, undefined);
      device.set(signedInKey, 'yes');
      const inTab = tab.set(storageKey, text);
      return remember && device.set(storageKey, text) ? 'device' : inTab ? 'tab' : 'page';
    },
    remove,
    removeEverywhere: () => {
      remove();
      if (channel !== undefined) send(channel, { kind: 'signedOut' });
    },
  };
}

const openChannel = ({ BroadcastChannel }: Platform): BroadcastChannel | undefined => {
  try {
    return BroadcastChannel && new BroadcastChannel(channelName);
  } catch {
    return undefined; // blocked, as storage may be
  }
};

const send = (channel: BroadcastChannel, message: Message): void => channel.postMessage(message);

const askOthers = (
  channel: BroadcastChannel,
): { readonly answered: Promise<StoredCredentials>; readonly stop: () => void } => {
  const listening = new AbortController();
  const stop = (): void => listening.abort();
  const answered = new Promise<StoredCredentials>((resolve) => {
    const receive = ({ data }: MessageEvent): void => {
      const { kind, found } = Object(data) as Partial<{ kind: string; found: Partial<StoredCredentials> }>; // checked below
      const given = kind === 'have' ? checkCredentials(found?.given) : undefined;
      if (given === undefined) return;
      stop();
      resolve({ given, remember: found?.remember === true });
    };
    channel.addEventListener('message', receive, { signal: listening.signal });
    send(channel, { kind: 'ask' });
  });
  return { answered, stop };
};

type SafeStorage = {
  readonly get: (key: string) => string | null;
  /** False if the browser blocks storage. Undefined removes. */
  readonly set: (key: string, text: string | undefined) => boolean;
};

/** A storage that may be blocked: then it is empty. */
const createSafeStorage = (storage: () => Storage): SafeStorage => ({
  get: (key) => {
    try {
      return storage().getItem(key);
    } catch {
      return null;
    }
  },
  set: (key, text) => {
    try {
      if (text === undefined) storage().removeItem(key);
      else storage().setItem(key, text);
      return true;
    } catch {
      return false;
    }
  },
});

const parseCredentials = (text: string | null): Credentials | undefined => {
  try {
    return checkCredentials(JSON.parse(text ?? 'null'));
  } catch {
    return undefined; // not ours
  }
};

const checkCredentials = (value: unknown): Credentials | undefined => {
  const { userId, secret } = Object(value) as Partial<Credentials>; // checked here
  return typeof userId === 'string' && typeof secret === 'string' ? { userId, secret } : undefined;
};
