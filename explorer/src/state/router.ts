// Routes: maps paths to pages, and navigates without reloading. Filters and ranges are in the query; secrets never are.
import { type ReadonlySignal, signal } from '@preact/signals';
import { parseFeedId } from '@sealpost/protocol';

export type PageRoute =
  | { readonly page: 'catalog' }
  | { readonly page: 'stream'; readonly feedId: string }
  | { readonly page: 'report'; readonly feedId: string; readonly timestamp: number }
  | { readonly page: 'alerts' }
  | { readonly page: 'docs' }
  | { readonly page: 'inspect' }
  | { readonly page: 'status' }
  | { readonly page: 'unknown' };

export type PageAddress = { readonly route: PageRoute; readonly query: URLSearchParams };

export type Router = {
  readonly address: ReadonlySignal<PageAddress>;
  /** Navigates within the explorer, as a click on a link does. */
  readonly go: (href: string) => void;
  /** Changes the query without a new history entry, so that typing does not fill the history. */
  readonly setQuery: (query: URLSearchParams) => void;
  /** Changes the query with a new history entry, so that Back returns to the one before. The page does not scroll. */
  readonly pushQuery: (query: URLSearchParams) => void;
};

/** The page at a path. */
export const parseRoute = (path: string): PageRoute => {
  if (path === '/') return { page: 'catalog' };
  if (path === '/alerts') return { page: 'alerts' };
  if (path === '/docs') return { page: 'docs' };
  if (path === '/inspect') return { page: 'inspect' };
  if (path === '/status') return { page: 'status' };
  const [, raw, timestamp] = /^\/streams\/([^/]+)(?:\/at\/([0-9]{1,10}))?$/.exec(path) ?? [];
  const feedId = raw === undefined ? undefined : readFeedId(raw);
  if (feedId === undefined) return { page: 'unknown' };
  return timestamp === undefined
    ? { page: 'stream', feedId }
    : { page: 'report', feedId, timestamp: Number(timestamp) };
};

const readFeedId = (raw: string): string | undefined => {
  try {
    return parseFeedId(raw);
  } catch {
    return undefined; // not a feed ID
  }
};

export const streamHref = (feedId: string): string => `/streams/${feedId}`;

/** The permalink of the report that is valid at a second. */
export const reportHref = (feedId: string, timestamp: number): string => `/streams/${feedId}/at/${timestamp}`;

const addressOf = ({ pathname, search }: Location): PageAddress => ({
  route: parseRoute(pathname),
  query: new URLSearchParams(search),
});

/** Follows the address bar, and clicks on links within the explorer. */
export const createRouter = (window: Window): Router => {
  const address = signal(addressOf(window.location));
  const bar = createBar(window, address);
  const read = (): void => {
    address.value = addressOf(window.location);
  };
  const go = (href: string): void => {
    bar.write();
    const { history, location, scrollY } = window;
    // The scroll position is stored with the history entry, so that going back restores it.
    history.replaceState({ scrollY }, '', `${location.pathname}${location.search}${location.hash}`);
    history.pushState(null, '', href);
    read();
    window.scrollTo(0, 0);
  };
  window.history.scrollRestoration = 'manual'; // browsers restore before the page is rendered
  window.addEventListener('popstate', ({ state }) => {
    read();
    if (window.location.hash !== '') return; // the browser or the page moves to the section
    const { scrollY } = Object(state) as { readonly scrollY?: unknown }; // may be another script's; checked below
    window.requestAnimationFrame(() => window.scrollTo(0, typeof scrollY === 'number' ? scrollY : 0));
  });
  window.document.addEventListener('click', (event) => {
    const href = ownHref(event, window.location.origin);
    if (href === undefined) return;
    event.preventDefault();
    go(href);
  });
  return {
    address,
    go,
    setQuery: (query) => {
      address.value = { route: address.peek().route, query };
      bar.writeLater();
    },
    pushQuery: (query) => {
      bar.write();
      const { history, location, scrollY } = window;
      history.replaceState({ scrollY }, '', `${location.pathname}${location.search}`);
      history.pushState({ scrollY }, '', `${location.pathname}${searchOf(query)}`);
      read();
    },
  };
};

/** The query as the address bar shows it; empty without arguments. */
const searchOf = (query: URLSearchParams): string => {
  const text = query.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  return text === '' ? '' : `?${text}`;
};

const writeAfterMs = 150;

/** Writes the address bar after a delay, because browsers limit how often it may change. */
const createBar = (window: Window, address: ReadonlySignal<PageAddress>) => {
  let timer: number | undefined;
  const write = (): void => {
    if (timer === undefined) return;
    window.clearTimeout(timer);
    timer = undefined;
    const { history, location } = window;
    history.replaceState(history.state, '', `${location.pathname}${searchOf(address.peek().query)}`);
  };
  return {
    write,
    writeLater: () => {
      timer ??= window.setTimeout(write, writeAfterMs);
    },
  };
};

/** The address within the explorer that a click leads to; undefined if the browser should handle it. */
const ownHref = (event: MouseEvent, origin: string): string | undefined => {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return undefined;
  const link = (event.target as Element | null)?.closest('a'); // what is clicked is an element
  if (link == null || link.target !== '' || link.hasAttribute('download')) return undefined;
  if (link.getAttribute('href')?.startsWith('#') ?? true) return undefined; // within the page
  const url = new URL(link.href, origin);
  return url.origin === origin && parseRoute(url.pathname).page !== 'unknown'
    ? `${url.pathname}${url.search}${url.hash}`
    : undefined;
};
