import { expect, test } from 'vitest';
import { type BrowserStorage, createBrowserStorage } from './browser-storage.ts';
import { createStoredSetting } from './stored-setting.ts';
import { createTimes } from './times.ts';

/** Tabs of one browser: what one writes, the others are told. */
const createTabs = (stored: Record<string, string> = {}) => {
  const listeners: ((event: StorageEvent) => void)[] = [];
  const openTab = (): BrowserStorage => {
    const own: ((event: StorageEvent) => void)[] = [];
    const localStorage = {
      getItem: (key: string) => stored[key] ?? null,
      setItem: (key: string, newValue: string) => {
        stored[key] = newValue;
        for (const listener of listeners) if (!own.includes(listener)) listener({ key, newValue } as StorageEvent);
      },
    } as Storage;
    const addEventListener = ((_: string, listener: (event: StorageEvent) => void) => {
      own.push(listener);
      listeners.push(listener);
    }) as Window['addEventListener'];
    return createBrowserStorage({ localStorage, addEventListener });
  };
  return { openTab, stored };
};

/** A browser whose storage fails like this. */
const refusing = (error: Error): BrowserStorage =>
  createBrowserStorage({
    get localStorage(): Storage {
      throw error;
    },
    addEventListener: () => {},
  });

const ms = 1_700_000_000_000;

test('times: UTC until the user switches; the other zone is for tooltips', () => {
  const times = createTimes(createTabs().openTab());
  expect(times.format(ms)).toBe('2023-11-14 22:13:20 UTC');
  expect(times.formatOther(ms)).toMatch(/^2023-11-1[45] [0-9]{2}:13:20 [+−][0-9]{2}:[0-9]{2} local time$/);
  expect(times.split(ms)).toEqual({ day: '2023-11-14', clock: '22:13:20', zone: 'UTC' });
  times.toggle();
  expect(times.format(ms)).toMatch(/^2023-11-1[45] [0-9]{2}:13:20 [+−][0-9]{2}:[0-9]{2}$/);
  expect(times.formatOther(ms)).toBe('2023-11-14 22:13:20 UTC');
  expect(times.zoneName()).toBe('local time');
});

test('times: the choice outlives the page and reaches other tabs', () => {
  const tabs = createTabs();
  const [first, second] = [createTimes(tabs.openTab()), createTimes(tabs.openTab())];
  first.toggle();
  expect([second.zone.value, createTimes(tabs.openTab()).zone.value]).toEqual(['local', 'local']);
  second.toggle();
  expect([first.zone.value, createTimes(tabs.openTab()).zone.value]).toEqual(['utc', 'utc']);
});

test.each(['', 'local', '"LOCAL"', '{}', '[1', 'null'])('times: %j in storage is not a choice', (text) => {
  expect(createTimes(createTabs({ 'sealpost-times': text }).openTab()).zone.value).toBe('utc');
});

test('times: a browser that blocks storage can still switch, until the page is closed', () => {
  const times = createTimes(refusing(new DOMException('Denied.', 'SecurityError')));
  times.toggle();
  expect(times.zone.value).toBe('local');
});

const parse = (stored: unknown): number => (typeof stored === 'number' ? stored : 0);

test.each([
  ['SecurityError', 'blocked'],
  ['QuotaExceededError', 'full'],
] as const)(
  'kept: a value that is not stored (%s) lasts, and the storage says why, until that is dismissed',
  (name, why) => {
    const storage = refusing(new DOMException('No.', name));
    const setting = createStoredSetting(storage, 'key', parse);
    expect(storage.refusal.value).toBeUndefined(); // nothing is lost yet
    setting.set(7);
    expect([setting.value.value, storage.refusal.value]).toEqual([7, why]);
    storage.dismissRefusal();
    setting.set(8);
    expect([setting.value.value, storage.refusal.value]).toEqual([8, undefined]);
  },
);

test('kept: storage cleared in another tab resets the value', () => {
  const tabs = createTabs();
  const other = tabs.openTab();
  const setting = createStoredSetting(tabs.openTab(), 'key', parse);
  setting.set(7);
  expect([setting.value.value, tabs.stored.key]).toEqual([7, '7']);
  other.write('key', 'not JSON');
  expect(setting.value.value).toBe(0);
});
