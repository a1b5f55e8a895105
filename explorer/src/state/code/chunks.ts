// Code that is loaded on demand: retried when it does not arrive, and replaced by a reload of the page when the server has a newer
// release, whose files have other names.

export type Chunks = {
  /**
   * Calls `load`, such as `() => import('./page.tsx')`, up to three times; then rejects with a LoadingError. If the server has a newer
   * release, reloads the page once and never resolves.
   */
  readonly load: <T>(load: () => Promise<T>) => Promise<T>;
};

/** A part of the page did not arrive. */
export class LoadingError extends Error {
  constructor(cause: unknown) {
    super('A part of this page did not load.', { cause });
    this.name = 'LoadingError';
  }
}

/** The parts of a window that loading uses. */
export type LoadingWindow = Pick<Window, 'fetch' | 'location' | 'sessionStorage' | 'setTimeout'> & {
  readonly document: Pick<Document, 'querySelector'>;
};

/** Before the second and the third attempt. */
const retryAfterMs = [500, 2_000];
/** Two servers of different releases must not send the page back and forth. */
const againMs = 60_000;
/** When the page was last reloaded, and the entry script of that release: a second reload would not help. Also used by public/start.js. */
const storageKey = 'sealpost-reloaded';

export const createChunks = (window: LoadingWindow, waitsMs: readonly number[] = retryAfterMs): Chunks => ({
  load: async (load) => {
    for (const waitMs of waitsMs) {
      try {
        return await load();
      } catch {
        await new Promise((resolve) => window.setTimeout(() => resolve(undefined), waitMs));
      }
    }
    return load().catch(async (error: unknown) => {
      const entry = await readNewEntry(window);
      if (entry === undefined || !keepReload(window, entry)) throw new LoadingError(error);
      window.location.reload();
      return new Promise<never>(() => {}); // the page goes
    });
  },
});

/** The server's entry script if it is not this page's; undefined if it is, or cannot be read. */
const readNewEntry = async ({ fetch, document }: LoadingWindow): Promise<string | undefined> => {
  try {
    const response = await fetch('/', { cache: 'no-cache', headers: { Accept: 'text/html' } });
    const [, entry] = /<script type="module"[^<>]*\ssrc="([^"]+)"/.exec(response.ok ? await response.text() : '') ?? [];
    const own = document.querySelector('script[type=module][src]')?.getAttribute('src');
    return entry === own ? undefined : entry;
  } catch {
    return undefined; // the server is down
  }
};

/** False if the page was reloaded for this release or a minute ago, or if that cannot be known. */
const keepReload = (window: LoadingWindow, entry: string): boolean => {
  try {
    const { sessionStorage } = window;
    const [lastMs, lastEntry] = (sessionStorage.getItem(storageKey) ?? '0').split(' ');
    if (lastEntry === entry || Math.abs(Date.now() - Number(lastMs)) < againMs) return false;
    sessionStorage.setItem(storageKey, `${Date.now()} ${entry}`);
    return true;
  } catch {
    return false; // storage is blocked
  }
};
