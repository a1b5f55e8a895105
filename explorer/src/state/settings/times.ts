// The times on all pages, in UTC or in local time: one switch, kept in the browser. Files and API requests always have UTC.
import { computed, type ReadonlySignal } from '@preact/signals';
import { formatLocal, formatUtc } from '../../ui/format.ts';
import type { BrowserStorage } from './browser-storage.ts';
import { createStoredSetting } from './stored-setting.ts';

export type TimesZone = 'utc' | 'local';

/** Components that call one of the functions render again when the user switches. */
export type Times = {
  readonly zone: ReadonlySignal<TimesZone>;
  readonly toggle: () => void;
  /** With the zone: `2026-11-15 09:28:17 UTC`, or `2026-11-15 10:28:17 +01:00` with the offset of that time. */
  readonly format: (ms: number) => string;
  /** The same in the other zone, for tooltips. */
  readonly formatOther: (ms: number) => string;
  /** The same as `format`, in its three parts. */
  readonly split: (ms: number) => TimeParts;
  /** For a table that names the zone once: `UTC`, or `local time`. */
  readonly zoneName: () => string;
};

/** `zone` is `UTC`, or the offset at that time: `+01:00`. */
export type TimeParts = { readonly day: string; readonly clock: string; readonly zone: string };

const storageKey = 'sealpost-times';

export function createTimes(storage: BrowserStorage): Times {
  const setting = createStoredSetting<TimesZone>(storage, storageKey, (stored) =>
    stored === 'local' ? 'local' : 'utc',
  );
  const isLocal = computed(() => setting.value.value === 'local');
  const format = (ms: number): string => (isLocal.value ? formatLocal(ms) : formatUtc(ms));
  return {
    zone: setting.value,
    toggle: () => setting.set(isLocal.peek() ? 'utc' : 'local'),
    format,
    formatOther: (ms) => (isLocal.value ? formatUtc(ms) : `${formatLocal(ms)} local time`),
    split: (ms) => {
      const [day = '', clock = '', zone = ''] = format(ms).split(' ');
      return { day, clock, zone };
    },
    zoneName: () => (isLocal.value ? 'local time' : 'UTC'),
  };
}
