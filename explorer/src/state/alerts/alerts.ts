// Alerts that the page watches for while it is open: kept in the browser, evaluated in one tab, shown in all.
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';
import { silentMsOf } from '../../ui/price/market-hours.ts';
import { isMarketClosed } from '../../ui/price-age.ts';
import { isRateStream } from '../../ui/price-unit.ts';
import type { Clock } from '../clock.ts';
import type { Chunks } from '../code/chunks.ts';
import type { Live, LiveReport } from '../live-prices.ts';
import type { SandboxWatch } from '../sandbox.ts';
import type { Session } from '../session.ts';
import type { BrowserStorage } from '../settings/browser-storage.ts';
import { createStoredSetting } from '../settings/stored-setting.ts';
import type { Catalog } from '../user-catalog.ts';
import { createRefusals } from './refusals.ts';
import {
  type Alert,
  type AlertEvent,
  type AlertRule,
  afterAge,
  afterPrice,
  afterRefusal,
  alertsMax,
  historyMax,
  parseStored,
  ruleText,
  type StoredAlerts,
  toStored,
} from './rules.ts';

export type Permission = 'granted' | 'denied' | 'default' | 'unsupported';

export type Alerts = {
  readonly list: ReadonlySignal<readonly Alert[]>;
  /** Newest first. */
  readonly history: ReadonlySignal<readonly AlertEvent[]>;
  /** Triggered since the page was opened and not dismissed; newest first. */
  readonly toasts: ReadonlySignal<readonly AlertEvent[]>;
  readonly dismiss: (seq: number) => void;
  /** False if there are as many as there may be. */
  readonly add: (feedId: string, rule: AlertRule) => boolean;
  readonly change: (id: string, rule: AlertRule) => void;
  readonly setPaused: (id: string, isPaused: boolean) => void;
  readonly remove: (id: string) => void;
  readonly clearHistory: () => void;
  /** Whether the browser shows notifications. */
  readonly permission: ReadonlySignal<Permission>;
  /** Asks the user; call it only when the user acts. */
  readonly askPermission: () => Promise<void>;
  /** Why reports could not be verified in this tab; undefined if they could. */
  readonly problem: ReadonlySignal<unknown>;
};

export type AlertParts = {
  readonly window: Window & typeof globalThis;
  readonly session: Session;
  readonly catalog: Catalog;
  readonly live: Live;
  readonly clock: Clock;
  readonly chunks: Chunks;
  readonly storage: BrowserStorage;
  readonly sandbox: SandboxWatch;
};

const storageKey = 'sealpost-alerts';
const lockName = 'sealpost-alerts';
/** How often ages are compared. */
const checkEveryMs = 2_000;
/** After a reconnect, before a missing report counts: the client backfills first. */
const settleMs = 5_000;
const toastsMax = 3;

export function createAlerts(parts: AlertParts): Alerts {
  const { window, session } = parts;
  const setting = createStoredSetting<StoredAlerts>(parts.storage, storageKey, parseStored, toStored);
  const permission = signal(readPermission(window));
  const openedSeq = setting.value.peek().history[0]?.seq ?? 0;
  const dismissed = signal<ReadonlySet<number>>(new Set());
  const problem = signal<unknown>(undefined);
  const update = (alerts: readonly Alert[], history = setting.value.peek().history): void =>
    setting.set({ alerts, history });
  const setAlert = (id: string, change: (alert: Alert) => Alert): void =>
    update(setting.value.peek().alerts.map((alert) => (alert.id === id ? change(alert) : alert)));
  const store: AlertStore = {
    alerts: () => setting.value.peek().alerts,
    record: ([next, isTriggered], text) => {
      const { alerts, history } = setting.value.peek();
      const seq = Math.max(Date.now(), (history[0]?.seq ?? 0) + 1);
      const event = { seq, feedId: next.feedId, text, atMs: parts.clock.read() };
      const others = alerts.map((alert) => (alert.id === next.id ? next : alert));
      update(others, isTriggered ? [event, ...history].slice(0, historyMax) : history);
      if (isTriggered) notify(window, event, nameOf(parts.catalog, next.feedId));
    },
  };
  const feedKey = computed(() =>
    [...new Set(setting.value.value.alerts.filter(({ isPaused }) => !isPaused).map(({ feedId }) => feedId))]
      .toSorted()
      .join(' '),
  );
  const isSandbox = computed(() => parts.sandbox.value !== undefined);
  effect(() => {
    isSandbox.value; // its time may be earlier than the clock's until now: reports are awaited from there
    if (session.userId.value === undefined || feedKey.value === '') return undefined;
    const onProblem = (error: unknown): void => {
      problem.value = error;
    };
    return lead(window, () => watchAlerts(parts, feedKey.peek().split(' '), store, onProblem));
  });
  return {
    list: computed(() => setting.value.value.alerts),
    history: computed(() => setting.value.value.history),
    toasts: computed(() =>
      setting.value.value.history.filter(({ seq }) => seq > openedSeq && !dismissed.value.has(seq)).slice(0, toastsMax),
    ),
    dismiss: (seq) => {
      dismissed.value = new Set([...dismissed.peek(), seq]);
    },
    add: (feedId, rule) => {
      const { alerts } = setting.value.peek();
      if (alerts.length >= alertsMax) return false;
      const id = `${Date.now().toString(36)}-${Math.floor(Math.random() * 1e9).toString(36)}`;
      update([...alerts, { id, feedId, rule, isPaused: false, isArmed: false, lastMs: undefined }]);
      return true;
    },
    change: (id, rule) =>
      setAlert(id, (alert) => ({ ...alert, rule, isArmed: false, isPaused: false, lastMs: undefined })),
    setPaused: (id, isPaused) => setAlert(id, (alert) => ({ ...alert, isPaused, isArmed: false })),
    remove: (id) => update(setting.value.peek().alerts.filter((alert) => alert.id !== id)),
    clearHistory: () => update(setting.value.peek().alerts, []),
    permission,
    askPermission: async () => {
      if (permission.peek() === 'default') await window.Notification.requestPermission();
      permission.value = readPermission(window);
    },
    problem,
  };
}

type AlertStore = {
  readonly alerts: () => readonly Alert[];
  /** Keeps what became of an alert; tells the user if it was triggered. */
  readonly record: (result: readonly [next: Alert, isTriggered: boolean], text: string) => void;
};

const nameOf = (catalog: Catalog, feedId: string): string => {
  const stream = catalog.find(feedId);
  return stream === undefined ? `${feedId.slice(0, 10)}…` : `${stream.baseAsset}/${stream.quoteAsset}`;
};

/** Acts in one tab of the browser at a time, until the returned function is called; another tab then takes over. */
const lead = (window: Window, act: () => () => void): (() => void) => {
  const ended = new AbortController();
  const hold = async (): Promise<void> => {
    if (ended.signal.aborted) return;
    const stop = act();
    await new Promise((resolve) => ended.signal.addEventListener('abort', resolve));
    stop();
  };
  const { locks } = window.navigator as Partial<Navigator>; // needs https or localhost
  if (locks === undefined) void hold();
  else locks.request(lockName, { signal: ended.signal }, hold).catch(() => {}); // aborted while it waits
  return () => ended.abort();
};

/** Evaluates the alerts of these streams. */
const watchAlerts = (
  { window, session, catalog, live, clock, chunks }: AlertParts,
  feedIds: readonly string[],
  store: AlertStore,
  onProblem: (error: unknown) => void,
) => {
  const apply = (
    feedId: string,
    judge: (alert: Alert) => readonly [Alert, boolean],
    textOf = (alert: Alert) => ruleText(alert.rule, live.digits(feedId).peek(), isRateStream(feedId)),
  ): void => {
    for (const alert of store.alerts().filter((one) => one.feedId === feedId)) {
      const result = judge(alert);
      if (result[0] !== alert) store.record(result, textOf(alert));
    }
  };
  const onRefused = ({ report }: LiveReport): void =>
    apply(
      report.feedID,
      (alert) => afterRefusal(alert, clock.read()),
      () => `The report of second ${report.observationsTimestamp} failed verification`,
    );
  const refusals = createRefusals({ session, chunks, onRefused, onProblem });
  const onReport = (next: LiveReport): void => {
    const { feedID: feedId } = next.report;
    const price = next.decoded?.price;
    if (price !== undefined) apply(feedId, (alert) => afterPrice(alert, price, clock.read()));
    if (
      store
        .alerts()
        .some(({ feedId: other, rule, isPaused }) => other === feedId && rule.kind === 'unverified' && !isPaused)
    )
      refusals.check(next);
  };
  const unwatch = live.watch(feedIds, onReport);
  let liveSinceMs: number | undefined;
  const timer = window.setInterval(() => {
    // While this page is not connected, a missing report says nothing about the stream.
    liveSinceMs = live.state.peek() === 'live' ? (liveSinceMs ?? performance.now()) : undefined;
    if (liveSinceMs === undefined || performance.now() - liveSinceMs < settleMs) return;
    for (const feedId of feedIds) {
      const [newest, intervalMs] = [live.latest(feedId).peek(), live.intervalMs(feedId).peek()];
      if (newest === undefined || intervalMs === undefined) continue;
      const { observationsMs, decoded } = newest;
      const isClosed = decoded !== undefined && isMarketClosed(decoded);
      const silentMs = silentMsOf(catalog.find(feedId), { observationsMs, isClosed }, clock.read());
      if (silentMs !== undefined) apply(feedId, (alert) => afterAge(alert, silentMs, intervalMs, clock.read()));
    }
  }, checkEveryMs);
  return () => {
    window.clearInterval(timer);
    unwatch();
    refusals.close();
    onProblem(undefined);
  };
};

const readPermission = ({ Notification }: Window & typeof globalThis): Permission =>
  Notification === undefined ? 'unsupported' : Notification.permission;

const notify = (window: Window & typeof globalThis, { feedId, text, seq }: AlertEvent, name: string): void => {
  if (readPermission(window) !== 'granted') return;
  try {
    const notification = new window.Notification(name, { body: text, tag: `sealpost-${seq}`, icon: '/icon.svg' });
    notification.addEventListener('click', () => {
      window.focus();
      window.location.assign(`/streams/${feedId}`);
    });
  } catch {
    // Chrome on Android shows notifications only from service workers; the page shows the alert.
  }
};
