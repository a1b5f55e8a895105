import { expect, test } from 'vitest';
import { createRouter, explainUnknownPath, parseRoute, reportHref, streamHref } from './router.ts';

const feedId = `0x0003${'ab'.repeat(30)}`;

test('router: paths map to pages', () => {
  expect(parseRoute('/')).toEqual({ page: 'catalog' });
  expect(parseRoute('/docs')).toEqual({ page: 'docs' });
  expect(parseRoute('/inspect')).toEqual({ page: 'inspect' });
  expect(parseRoute('/status')).toEqual({ page: 'status' });
  expect(parseRoute(streamHref(feedId))).toEqual({ page: 'stream', feedId });
  expect(parseRoute(reportHref(feedId, 1_700_000_000))).toEqual({ page: 'report', feedId, timestamp: 1_700_000_000 });
});

test('router: a feed ID in upper case is the same stream', () => {
  expect(parseRoute(`/streams/0x0003${'AB'.repeat(30)}`)).toEqual({ page: 'stream', feedId });
});

test('router: other paths are unknown', () => {
  for (const path of [
    '/nothing',
    '/streams',
    '/streams/0x12',
    `${streamHref(feedId)}/at/x`,
    `${streamHref(feedId)}/at/12345678901`,
  ])
    expect(parseRoute(path)).toEqual({ page: 'unknown', path });
});

/** A window that keeps its history as a list. */
const openWindow = (start: string) => {
  const entries: { url: string; state: unknown }[] = [{ url: start, state: null }];
  const listeners = new Map<string, (event: object) => void>();
  let scrolled = 0;
  const timers: (() => void)[] = [];
  const location = {
    origin: 'http://127.0.0.1',
    get pathname() {
      return new URL(entries.at(-1)?.url ?? '', 'http://127.0.0.1').pathname;
    },
    get search() {
      return new URL(entries.at(-1)?.url ?? '', 'http://127.0.0.1').search;
    },
    get hash() {
      return new URL(entries.at(-1)?.url ?? '', 'http://127.0.0.1').hash;
    },
  };
  const listen = (name: string, listener: (event: object) => void) => void listeners.set(name, listener);
  const window = {
    location,
    history: {
      get state() {
        return entries.at(-1)?.state;
      },
      pushState: (state: unknown, _: string, url: string) => void entries.push({ url, state }),
      replaceState: (state: unknown, _: string, url: string) => void entries.splice(-1, 1, { url, state }),
    },
    addEventListener: listen,
    document: { addEventListener: listen },
    get scrollY() {
      return scrolled;
    },
    scrollTo: (_: number, y: number) => {
      scrolled = y;
    },
    requestAnimationFrame: (run: () => void) => run(),
    setTimeout: (run: () => void) => timers.push(run),
    clearTimeout: () => {},
  };
  return {
    window: window as unknown as Window, // the parts that a router uses
    entries,
    runTimers: () => timers.splice(0).forEach((run) => void run()),
    goBack: () => {
      entries.pop();
      listeners.get('popstate')?.({ state: entries.at(-1)?.state });
    },
    click: (link: object | null, event: object = {}) => {
      let isPrevented = false;
      const target = { closest: () => link };
      const preventDefault = () => {
        isPrevented = true;
      };
      listeners.get('click')?.({ button: 0, target, preventDefault, ...event });
      return isPrevented;
    },
  };
};

const link = (href: string) => ({
  href: new URL(href, 'http://127.0.0.1').href,
  target: '',
  hasAttribute: () => false,
  getAttribute: () => href,
});

test('router: handles clicks on links within the explorer, and leaves others to the browser', () => {
  const { window, entries, click } = openWindow('/');
  const { address } = createRouter(window);
  expect(click(link('/status?x=1'))).toBe(true);
  expect(address.value.route).toEqual({ page: 'status' });
  expect(address.value.query.get('x')).toBe('1');
  expect(click(link('/openapi.json'))).toBe(false);
  expect(click(link('#main'))).toBe(false);
  expect(click(link('https://example.com/status'))).toBe(false);
  expect(click({ ...link('/'), target: '_blank' })).toBe(false);
  expect(click(link('/'), { ctrlKey: true })).toBe(false);
  expect(click(null)).toBe(false);
  expect(entries.map(({ url }) => url)).toEqual(['/', '/status?x=1']);
});

test('router: going back restores the scroll position', () => {
  const { window, goBack } = openWindow('/?q=eth');
  const { address, go } = createRouter(window);
  window.scrollTo(0, 640);
  go('/status');
  expect(window.scrollY).toBe(0);
  goBack();
  expect(address.value.route).toEqual({ page: 'catalog' });
  expect(address.value.query.get('q')).toBe('eth');
  expect(window.scrollY).toBe(640);
});

test('router: going back says which page was opened from there, until the address changes', () => {
  const { window, entries, goBack } = openWindow('/');
  const { address, go, setQuery } = createRouter(window);
  go(`${streamHref(feedId)}?range=1h#chart`);
  expect(address.value.returnedFrom).toBeUndefined();
  goBack();
  expect(address.value.returnedFrom).toEqual({ page: 'stream', feedId });
  setQuery(new URLSearchParams('q=e'));
  expect(address.value.returnedFrom).toBeUndefined();
  for (const opened of [7, null, {}]) {
    entries.splice(-1, 1, { url: '/', state: { opened } }, { url: '/status', state: null });
    goBack();
    expect(address.value.returnedFrom).toBeUndefined();
  }
});

test('router: a section is part of the address, and moving to it is left to the browser and the page', () => {
  const { window, entries, click, goBack } = openWindow('/docs#time');
  createRouter(window);
  expect(click(link('/docs#errors'))).toBe(true);
  window.scrollTo(0, 640);
  goBack();
  expect(entries.map(({ url }) => url)).toEqual(['/docs#time']);
  expect(window.scrollY).toBe(640);
});

test('router: a query applies at once, the address bar follows, and the history does not grow', () => {
  const { window, entries, runTimers } = openWindow('/');
  const { address, setQuery } = createRouter(window);
  setQuery(new URLSearchParams('q=e'));
  setQuery(new URLSearchParams('q=et&status=live,testing'));
  expect(address.value.query.get('q')).toBe('et');
  expect(entries.map(({ url }) => url)).toEqual(['/']);
  runTimers();
  expect(entries.map(({ url }) => url)).toEqual(['/?q=et&status=live,testing']);
});

test('router: a pending query is written to the address bar before navigating', () => {
  const { window, entries } = openWindow('/');
  const { go, setQuery } = createRouter(window);
  setQuery(new URLSearchParams('q=et'));
  go('/status');
  expect(entries.map(({ url }) => url)).toEqual(['/?q=et', '/status']);
});

test('router: a pushed query is a history entry, and the page does not scroll', () => {
  const { window, entries, goBack } = openWindow('/?q=eth');
  const { address, pushQuery } = createRouter(window);
  window.scrollTo(0, 640);
  pushQuery(new URLSearchParams({ q: 'eth', at: '2026-11-15T09:28:17Z' }));
  expect(entries.map(({ url }) => url)).toEqual(['/?q=eth', '/?q=eth&at=2026-11-15T09:28:17Z']);
  expect(window.scrollY).toBe(640);
  goBack();
  expect(address.value.query.get('at')).toBeNull();
  expect(window.scrollY).toBe(640);
});

test.each([
  [
    '/nothing',
    {
      text: 'The address of a stream is /streams/FEED_ID. The address of a report is /streams/FEED_ID/at/UNIX_SECONDS.',
    },
  ],
  ['/streams/BTC%20USD', { text: '“BTC USD” is not a feed ID: expected 0x and 64 hex digits.' }],
  ['/streams/%E0/at/5', { text: '“%E0” is not a feed ID: expected 0x and 64 hex digits.' }],
  [
    `/streams/${feedId}/reports`,
    { text: 'A stream has no page “/reports”.', href: `/streams/${feedId}`, label: 'Go to the stream' },
  ],
  [
    `/streams/${feedId}/at/1763190000123`,
    {
      text: '“1763190000123” is not a time in Unix seconds.',
      href: `/streams/${feedId}/at/1763190000`,
      label: 'Read it as milliseconds',
    },
  ],
  [
    `/streams/${feedId}/at/2026-11-15T09:28:17+01:00`,
    {
      text: '“2026-11-15T09:28:17+01:00” is not a time in Unix seconds.',
      href: `/streams/${feedId}?at=2026-11-15T09:28:17%2B01:00`,
      label: 'Look up that time',
    },
  ],
])('routes: the path %s is explained', (path, expected) => {
  expect(explainUnknownPath(path)).toEqual(expected);
});
