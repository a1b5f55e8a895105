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
  | { readonly page: 'unknown'; readonly path: string };

export type PageAddress = {
  readonly route: PageRoute;
  readonly query: URLSearchParams;
  /** The page that was opened from this one, after Back has returned here. */
  readonly returnedFrom?: PageRoute;
};

export type Router = {
  readonly address: ReadonlySignal<PageAddress>;
  /** Navigates within the explorer, as a click on a link does. */
  readonly go: (href: string) => void;
  /** Changes the query without a new history entry, so that typing does not fill the history. */
  readonly setQuery: (query: URLSearchParams) => void;
  /** Changes the query with a new history entry, so that Back returns to the one before. The page does not scroll. */
  readonly pushQuery: (query: URLSearchParams) => void;
};

/** Why a path has no page, and where to go instead. */
export type UnknownPath = { readonly text: string; readonly href?: string; readonly label?: string };

export function explainUnknownPath(path: string): UnknownPath {
  const [, stream, rest = '', at] = /^\/streams\/([^/]+)(\/at\/(.+)|\/.*)?$/.exec(path) ?? [];
  if (stream === undefined)
    return {
      text: 'The address of a stream is /streams/FEED_ID. The address of a report is /streams/FEED_ID/at/UNIX_SECONDS.',
    };
  const feedId = readFeedId(stream);
  if (feedId === undefined) return { text: `“${shorten(stream)}” is not a feed ID: expected 0x and 64 hex digits.` };
  if (at === undefined)
    return { text: `A stream has no page “${shorten(rest)}”.`, href: streamHref(feedId), label: 'Go to the stream' };
  const text = `“${shorten(at)}” is not a time in Unix seconds.`;
  if (/^[0-9]{13}$/.test(at))
    return { text, href: reportHref(feedId, Math.floor(Number(at) / 1_000)), label: 'Read it as milliseconds' };
  return {
    text,
    href: `${streamHref(feedId)}?at=${encodeURIComponent(decode(at)).replaceAll('%3A', ':')}`,
    label: 'Look up that time',
  };
}

/** Part of a path as text. */
const shorten = (text: string): string => {
  const whole = decode(text);
  return whole.length <= 80 ? whole : `${whole.slice(0, 79)}…`;
};

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // an incomplete escape
  }
};

/** The page at a path. */
export function parseRoute(path: string): PageRoute {
  if (path === '/') return { page: 'catalog' };
  if (path === '/alerts') return { page: 'alerts' };
  if (path === '/docs') return { page: 'docs' };
  if (path === '/inspect') return { page: 'inspect' };
  if (path === '/status') return { page: 'status' };
  const [, raw, timestamp] = /^\/streams\/([^/]+)(?:\/at\/([0-9]{1,10}))?$/.exec(path) ?? [];
  const feedId = raw === undefined ? undefined : readFeedId(raw);
  if (feedId === undefined) return { page: 'unknown', path };
  return timestamp === undefined
    ? { page: 'stream', feedId }
    : { page: 'report', feedId, timestamp: Number(timestamp) };
}

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

/**
 * Takes doubled slashes from the start of the address, which a base URL with a slash at its end makes. The server routes them like one, but to the
 * browser such a path names another host: no entry of the history can be written for it. Call it before anything reads the address.
 */
export function straightenAddress({ location, history }: Pick<Window, 'location' | 'history'>): void {
  const { pathname, search, hash } = location;
  if (!pathname.startsWith('//')) return;
  history.replaceState(history.state, '', `${pathname.replace(/^\/+/, '/')}${search}${hash}`);
}

/** What is stored with a history entry when another page is opened from it. */
type EntryState = { readonly scrollY?: unknown; readonly opened?: unknown };

/** Follows the address bar, and clicks on links within the explorer. */
export function createRouter(window: Window): Router {
  const address = signal(addressOf(window.location));
  const bar = createBar(window, address);
  const read = (): void => {
    address.value = addressOf(window.location);
  };
  const go = (href: string): void => {
    bar.write();
    const { history, location, scrollY } = window;
    // Stored with the history entry, so that going back restores the scroll position and the focus.
    history.replaceState({ scrollY, opened: href }, '', `${location.pathname}${location.search}${location.hash}`);
    history.pushState(null, '', href);
    read();
    window.scrollTo(0, 0);
  };
  window.history.scrollRestoration = 'manual'; // browsers restore before the page is rendered
  window.addEventListener('popstate', ({ state }) => {
    const { scrollY, opened } = Object(state) as EntryState; // may be another script's; checked below
    const returnedFrom =
      typeof opened === 'string' ? { returnedFrom: parseRoute(opened.split(/[?#]/, 1).join('')) } : {};
    address.value = { ...addressOf(window.location), ...returnedFrom };
    if (window.location.hash !== '') return; // the browser or the page moves to the section
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
}

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
