// Signs in with a demo's link, `#sign-in=CODE`. The code works once and is removed from the address bar first. It never replaces a
// signed-in account unless the user agrees (D154).
import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { type Credentials, SealpostError } from '@sealpost/client';
import type { Platform } from './platform.ts';
import type { CredentialStore, StoredCredentials } from './stored-credentials.ts';

/** The parts of the session that links use. */
export type LinkParts = {
  readonly store: Pick<CredentialStore, 'read' | 'ask'>;
  /** Signs in with credentials that were kept, and forgets them if the server rejects them. */
  readonly tryStored: (stored: StoredCredentials) => Promise<void>;
  /** The signed-in user. */
  readonly userId: () => string | undefined;
  /** Runs a sign-in: pages wait meanwhile, and show its failure. */
  readonly attempt: (act: () => Promise<void>) => Promise<void>;
  readonly tryOut: (stored: StoredCredentials) => Promise<void>;
};

export type Links = {
  readonly isSwitchOffered: ReadonlySignal<boolean>;
  readonly decideSwitch: (doSwitch: boolean) => void;
};

/** How long pages wait for another tab. */
const answerMaxMs = 300;

const elapsed = (ms: number): Promise<undefined> => new Promise((resolve) => setTimeout(resolve, ms, undefined));

/** Signs in with kept credentials, then with the link that opened the page, and with links opened later. */
export function followLinks(platform: Platform, { store, tryStored, userId, attempt, tryOut }: LinkParts): Links {
  const offered = signal<string | undefined>(undefined);
  const useCode = (code: string): Promise<void> =>
    attempt(async () => {
      const given = await exchangeCode(platform, code);
      await tryOut({ given, remember: false });
    });
  const arrive = (code: string): void => {
    if (userId() === undefined) void useCode(code);
    else offered.value = code;
  };
  /** Pages wait a moment for another tab. One that is too busy to answer by then signs this one in later. */
  const tryOthers = async (others: Promise<StoredCredentials>): Promise<void> => {
    const handed = await Promise.race([others, elapsed(answerMaxMs)]);
    if (handed !== undefined) await tryStored(handed);
    else void others.then((late) => attempt(() => tryStored(late)));
  };
  const begin = async (): Promise<void> => {
    const code = takeCode(platform);
    const stored = store.read();
    const others = stored === undefined && code === undefined ? store.ask() : undefined;
    if (stored !== undefined) await attempt(() => tryStored(stored));
    if (others !== undefined) await attempt(() => tryOthers(others));
    if (code !== undefined) arrive(code);
  };
  void begin();
  // The link may be opened in a tab that already shows the explorer.
  platform.addEventListener('hashchange', () => {
    const code = takeCode(platform);
    if (code !== undefined) arrive(code);
  });
  return {
    isSwitchOffered: computed(() => offered.value !== undefined),
    decideSwitch: (doSwitch) => {
      const code = offered.value;
      offered.value = undefined;
      if (doSwitch && code !== undefined) void useCode(code);
    },
  };
}

const fragmentStart = '#sign-in=';

/** Returns the code of `#sign-in=CODE` after removing it from the address bar and the history. */
const takeCode = ({ location, history }: Platform): string | undefined => {
  const { hash, pathname, search } = location;
  if (!hash.startsWith(fragmentStart)) return undefined;
  history.replaceState(null, '', `${pathname}${search}`);
  return hash.slice(fragmentStart.length);
};

/** How to get another link. */
export const newLinkAdvice = 'Run "sealpost demo --link" in the demo’s folder for a new link, or restart the demo.';

/** Exchanges a code for the demo's credentials. */
const exchangeCode = async (platform: Platform, code: string): Promise<Credentials> => {
  const fail = (text: string): SealpostError => new SealpostError('invalid_option', text, { advice: newLinkAdvice });
  if (!/^[\w.-]{1,200}$/.test(code)) throw fail('The link is incomplete.');
  const request = { method: 'POST', headers: { 'X-Sign-In-Code': code }, cache: 'no-store' } as const;
  const response = await platform.fetch(`${platform.location.origin}/sign-in`, request).catch(() => {
    throw new SealpostError('network_error', 'The server does not respond.');
  });
  if (!response.ok) throw fail('The link was already used or has expired.');
  const { userId, secret } = Object(await response.json().catch(() => undefined)) as Partial<Credentials>; // checked below
  if (typeof userId !== 'string' || typeof secret !== 'string')
    throw fail('This server does not support sign-in links.');
  return { userId, secret };
};
