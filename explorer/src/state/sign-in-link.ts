// Signing in by a link of a demo, `#sign-in=CODE`: the code works once, leaves the address bar before anything else happens, and never takes
// the place of an account that is signed in unless the user says so (D154).
import { computed, type ReadonlySignal, signal } from '@preact/signals';
import { SealpostError } from '@sealpost/client';
import type { Credentials, Platform } from './platform.ts';

/** Credentials that were kept, or got for a code. */
export type Found = { readonly given: Credentials; readonly keep: boolean };

/** What a link needs of the session. */
export type LinkParts = {
  /** What was kept when the page was opened. */
  readonly kept: Found | undefined;
  /** Who is signed in. */
  readonly userId: () => string | undefined;
  /** Has pages wait while it lasts, and tells if it fails. */
  readonly attempt: (act: () => Promise<void>) => Promise<void>;
  readonly tryOut: (found: Found) => Promise<void>;
  readonly refuse: (error: unknown) => void;
};

export type Links = {
  readonly isSwitchOffered: ReadonlySignal<boolean>;
  readonly decideSwitch: (doSwitch: boolean) => void;
};

/** Signs in with what was kept, then by the link that the page was opened with, and by those that are opened later. */
export const followLinks = (platform: Platform, { kept, userId, attempt, tryOut, refuse }: LinkParts): Links => {
  const offered = signal<string | undefined>(undefined);
  const useCode = (code: string): Promise<void> =>
    attempt(async () => {
      const given = await exchangeCode(platform, code);
      await tryOut({ given, keep: false });
      writeLinked(platform, true);
    });
  const arrive = (code: string): void => {
    if (userId() === undefined) void useCode(code);
    else offered.value = code;
  };
  const begin = async (): Promise<void> => {
    const [code, wasLinked] = [takeCode(platform), takeLinked(platform)];
    if (kept !== undefined) await attempt(() => tryOut(kept));
    else if (wasLinked && code === undefined) refuse(signedOut());
    if (code !== undefined) arrive(code);
  };
  void begin();
  // The link may be opened where the page is open already.
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
};

const fragmentStart = '#sign-in=';

/** The code of `#sign-in=CODE`; the address bar and the history lose it first. */
const takeCode = ({ location, history }: Platform): string | undefined => {
  const { hash, pathname, search } = location;
  if (!hash.startsWith(fragmentStart)) return undefined;
  history.replaceState(null, '', `${pathname}${search}`);
  return hash.slice(fragmentStart.length);
};

/** How to get another link. */
export const newLinkAdvice = 'Run "sealpost demo --link" in the demo’s folder for a new link, or restart the demo.';

const signedOut = (): SealpostError =>
  new SealpostError('missing_credentials', 'A sign-in link works once, until you reload the page.', {
    advice: newLinkAdvice,
  });

/** Asks the demo for the credentials that a code stands for. */
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

const linkedKey = 'sealpost-linked';

/** Remembers that a link signed in, nothing else: after a reload the page can say what to do. */
export const writeLinked = ({ sessionStorage }: Platform, isLinked: boolean): void => {
  try {
    if (isLinked) sessionStorage.setItem(linkedKey, 'yes');
    else sessionStorage.removeItem(linkedKey);
  } catch {
    // A browser that refuses storage: the page says less.
  }
};

const takeLinked = (platform: Platform): boolean => {
  try {
    const isLinked = platform.sessionStorage.getItem(linkedKey) !== null;
    writeLinked(platform, false);
    return isLinked;
  } catch {
    return false;
  }
};
