import { signal } from '@preact/signals';
import type { Client } from '@sealpost/client';
import { expect, test } from 'vitest';
import { type BrowserStorage, createBrowserStorage } from '../settings/browser-storage.ts';
import { type AlertParts, createAlerts } from './alerts.ts';
import { toStored } from './rules.ts';

const feedId = `0x${'0'.repeat(64)}`;

/** A browser that keeps one alert. */
const storageWithAlert = (): BrowserStorage => {
  const rule = { kind: 'price', direction: 'above', level: 5n, repeats: false } as const;
  const alert = { id: 'a', feedId, rule, isPaused: false, isArmed: false, lastMs: undefined };
  const text = JSON.stringify(toStored({ alerts: [alert], history: [] }));
  const localStorage = { getItem: () => text, setItem: () => {} } as unknown as Storage; // the parts that are used
  return createBrowserStorage({ localStorage, addEventListener: () => {} });
};

test('alerts: reports are awaited anew once the page knows that it is in a sandbox, whose time may be earlier', async () => {
  const sandbox = signal<AlertParts['sandbox']['value']>(undefined);
  const calls: string[] = [];
  createAlerts({
    window: { navigator: {}, setInterval: () => 1, clearInterval: () => {} },
    session: { userId: signal('a user'), client: signal({} as Client) },
    live: {
      watch: () => {
        calls.push('watch');
        return () => calls.push('stop');
      },
    },
    sandbox,
    storage: storageWithAlert(),
  } as unknown as AlertParts); // the parts that are used
  sandbox.value = { timeMs: 1, speed: 1, paused: false, faults: [] };
  await expect.poll(() => calls.toSorted()).toEqual(['stop', 'watch', 'watch']);
  sandbox.value = { timeMs: 2, speed: 1, paused: false, faults: [] };
  await Promise.resolve();
  expect(calls.length).toBe(3);
});
