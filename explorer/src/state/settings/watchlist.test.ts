import { expect, test } from 'vitest';
import { createBrowserStorage } from './browser-storage.ts';
import { createListColumns } from './list-columns.ts';
import { createWatchlist, watchlistMax } from './watchlist.ts';

/** A browser whose storage has this text, and what is written to it. */
const createStorage = (initial: string | null, write: () => void = () => {}) => {
  const listeners: ((event: { readonly key: string | null; readonly newValue: string | null }) => void)[] = [];
  const stored = { text: initial };
  const window = {
    localStorage: {
      getItem: () => stored.text,
      setItem: (_: string, text: string) => {
        write();
        stored.text = text;
      },
    },
    addEventListener: (_: string, listener: (typeof listeners)[number]) => listeners.push(listener),
  } as unknown as Window; // the parts that are used
  const storage = createBrowserStorage(window);
  const notifyOtherTab = (newValue: string): void =>
    listeners.forEach((listener) => void listener({ key: 'sealpost-watchlist', newValue }));
  return { storage, stored, notifyOtherTab };
};

const feedId = (number: number): string => `0x${number.toString(16).padStart(64, '0')}`;

test('watchlist: streams are added, removed, and stored', () => {
  const { storage, stored } = createStorage(null);
  const watchlist = createWatchlist(storage);
  expect([watchlist.toggle(feedId(1)), watchlist.toggle(feedId(2)), watchlist.toggle(feedId(1))]).toEqual([
    'added',
    'added',
    'removed',
  ]);
  expect([...watchlist.feedIds.value]).toEqual([feedId(2)]);
  expect(stored.text).toBe(JSON.stringify([feedId(2)]));
});

test('watchlist: whatever else is stored is ignored, and the list is bounded', () => {
  for (const stored of ['', 'nonsense', '{}', '7', 'null', '[null, 5, "0x12", {}]'])
    expect(createWatchlist(createStorage(stored).storage).feedIds.value.size).toBe(0);
  const many = Array.from({ length: watchlistMax + 5 }, (_, i) => feedId(i));
  const watchlist = createWatchlist(createStorage(JSON.stringify([...many, ...many])).storage);
  expect(watchlist.feedIds.value.size).toBe(watchlistMax);
  expect(watchlist.toggle(feedId(99_999))).toBe('full');
  expect(watchlist.toggle(feedId(0))).toBe('removed');
});

test('watchlist: works without storage, and follows other tabs', () => {
  const { storage, notifyOtherTab } = createStorage(null, () => {
    throw new Error('The quota has been exceeded.');
  });
  const watchlist = createWatchlist(storage);
  expect(watchlist.toggle(feedId(1))).toBe('added');
  expect(watchlist.feedIds.value.has(feedId(1))).toBe(true);
  notifyOtherTab(JSON.stringify([feedId(2)]));
  expect([...watchlist.feedIds.value]).toEqual([feedId(2)]);
});

test('columns: those turned on or off, whatever is stored', () => {
  const read = (stored: string | null) => createListColumns(createStorage(stored).storage).value.value;
  expect(read('{"price": false, "hours": true, "age": 5}')).toEqual({ price: false, hours: true });
  for (const stored of ['["price", 5]', '"price"', 'null', '5', '{', null]) expect(read(stored)).toEqual({});
});
