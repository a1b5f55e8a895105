// The streams that this user may see, loaded once and again when the user changes.
import { effect, type ReadonlySignal, signal } from '@preact/signals';
import { type Client, SealpostError } from '@sealpost/client';
import type { CatalogEntry } from '@sealpost/protocol';
import type { Session } from './session.ts';

export type CatalogState =
  | { readonly phase: 'loading' }
  | {
      readonly phase: 'failed';
      readonly error: unknown;
      /** The catalog is loaded again after a delay. */
      readonly willRetry: boolean;
    }
  | {
      readonly phase: 'ready';
      /** In the catalog's order: by name. */
      readonly streams: readonly CatalogEntry[];
      /** Feed IDs that the user may read; empty for anonymous users. */
      readonly readable: ReadonlySet<string>;
      /** Feed IDs of hidden streams; empty for anonymous users. */
      readonly hidden: ReadonlySet<string>;
    };

export type Catalog = {
  readonly state: ReadonlySignal<CatalogState>;
  readonly reload: () => void;
  readonly find: (feedId: string) => CatalogEntry | undefined;
};

/** The catalog does not mark hidden streams: they are those that it lists only with `hidden`. */
const readCatalog = async (client: Client, isAnonymous: boolean): Promise<CatalogState> => {
  if (isAnonymous) {
    const { feeds } = await client.discovery();
    return { phase: 'ready', streams: feeds, readable: new Set(), hidden: new Set() };
  }
  const [all, shown, readable] = await Promise.all([
    client.discovery({ hidden: true }),
    client.discovery(),
    client.feeds(),
  ]);
  const shownIds = new Set(shown.feeds.map(({ feedId }) => feedId));
  return {
    phase: 'ready',
    streams: all.feeds,
    readable: new Set(readable.feeds.map(({ feedID }) => feedID)),
    hidden: new Set(all.feeds.map(({ feedId }) => feedId).filter((feedId) => !shownIds.has(feedId))),
  };
};

/** Delay before a retry. */
const retryAfterMs = 5_000;

export function createCatalog(
  session: Pick<Session, 'client' | 'userId' | 'isPending'>,
  retryMs = retryAfterMs,
): Catalog {
  const state = signal<CatalogState>({ phase: 'loading' });
  const asked = signal(0);
  effect(() => {
    const client = session.client.value;
    asked.value; // a reload runs this again
    state.value = { phase: 'loading' };
    if (session.isPending.value) return undefined; // until the user is known
    const isAnonymous = session.userId.peek() === undefined;
    let isOver = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async (): Promise<void> => {
      const next = await readCatalog(client, isAnonymous).catch(toFailure);
      if (isOver) return;
      state.value = next;
      if (next.phase === 'failed' && next.willRetry) timer = setTimeout(ask, retryMs);
    };
    void ask();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  });
  return {
    state,
    reload: () => {
      asked.value += 1;
    },
    find: (feedId) =>
      state.value.phase === 'ready' ? state.value.streams.find((stream) => stream.feedId === feedId) : undefined,
  };
}

const toFailure = (error: unknown): CatalogState => ({
  phase: 'failed',
  error,
  willRetry: error instanceof SealpostError && error.retryable,
});
