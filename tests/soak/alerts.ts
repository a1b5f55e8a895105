// The alert rules of deploy/ in a real Prometheus that scrapes a soak, at ten times their speed: which alerts fired, and which should have.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../support/free-port.ts';
import { readText } from '../support/source-tree.ts';

/** Times of the rules are divided by this. */
export const alertSpeed = 10;

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** The same rules with all their times divided. */
export const speedUp = (rules: string, speed: number): string =>
  rules.replaceAll(
    /(for: |\[|offset |_interval: )(\d+)([smh])\b/g,
    (_, before: string, count: string, unit: keyof typeof unitMs) =>
      `${before}${Math.ceil((Number(count) * unitMs[unit]) / speed)}ms`,
  );

/** When an alert was firing. */
export type Firing = { readonly alert: string; readonly atMs: number };

/** Something that was done to the deployment, and the alerts that must fire for it. */
export type Occurrence = {
  readonly name: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly alerts: readonly string[];
};

/** An alert may come so much later than what it is for. */
const slackMs = 10_000;

/** Alerts about the machine, which is shared with the clients, or the test's databases, which do not flush, and not about what was done. */
const aboutMachine = new Set([
  'SlowRequests',
  'SlowToVisible',
  'SlowCommits',
  'BusyLoop',
  'MemoryGrows',
  'DurabilityReduced',
]);

/** Alerts that should have fired and did not, and those that fired for nothing. `possible` are those that an event may also cause. */
export const judgeAlerts = (
  occurrences: readonly Occurrence[],
  firings: readonly Firing[],
  possible: ReadonlySet<string>,
): { readonly missed: readonly string[]; readonly unexpected: readonly string[] } => {
  const during = (alert: string, { fromMs, toMs }: Occurrence): boolean =>
    firings.some((one) => one.alert === alert && one.atMs >= fromMs && one.atMs <= toMs + slackMs);
  const missed = occurrences.flatMap((one) =>
    one.alerts.filter((alert) => !during(alert, one)).map((alert) => `${alert} after ${one.name}`),
  );
  const fired = new Set(firings.map(({ alert }) => alert));
  return { missed, unexpected: [...fired].filter((alert) => !possible.has(alert) && !aboutMachine.has(alert)) };
};

export type Prometheus = {
  readonly child: ChildProcess;
  /** Resolves once all of these fire, or have had long enough to. */
  readonly wait: (alerts: readonly string[]) => Promise<void>;
  readonly firings: () => Promise<readonly Firing[]>;
  readonly stop: () => Promise<void>;
};

type ActiveAlert = { readonly state: string; readonly labels: { readonly alertname: string } };
/** What fires is recorded with the next evaluation, and read second by second. */
const recordMs = 3_000;

type Series = { readonly metric: { readonly alertname: string }; readonly values: readonly [number, string][] };

/** Scrapes the private listeners of nodes and the figures of the balancer. */
export const startPrometheus = async (
  program: string,
  folder: string,
  nodes: readonly string[],
  balancer: string,
): Promise<Prometheus> => {
  mkdirSync(folder);
  const settings = readText('deploy/prometheus/prometheus.yaml')
    .replace(/\["node1:7402", "node2:7402"\]/, JSON.stringify(nodes))
    .replace('balancer:8405', balancer);
  writeFileSync(join(folder, 'prometheus.yaml'), speedUp(settings, alertSpeed));
  writeFileSync(join(folder, 'alerts.yaml'), speedUp(readText('deploy/prometheus/alerts.yaml'), alertSpeed));
  const [port, begunMs] = [await freePort(), Date.now()];
  const child = spawn(
    program,
    [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'tsdb')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/-/ready`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error(`Prometheus ended with ${child.exitCode}.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    child,
    wait: (alerts) => waitForAlerts(url, alerts),
    firings: () => readFirings(url, begunMs),
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
};

/** Far longer than any rule takes at this speed: a busy machine scrapes late. */
const waitMs = 120_000;

const waitForAlerts = async (url: string, alerts: readonly string[]): Promise<void> => {
  const end = performance.now() + waitMs;
  const firing = async (): Promise<ReadonlySet<string>> => {
    const response = await fetch(`${url}/api/v1/alerts`);
    const { data } = (await response.json()) as { data: { alerts: readonly ActiveAlert[] } }; // Prometheus's own form
    return new Set(data.alerts.filter(({ state }) => state === 'firing').map(({ labels }) => labels.alertname));
  };
  while (performance.now() < end) {
    const fired = await firing();
    if (alerts.every((alert) => fired.has(alert))) break;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await new Promise((resolve) => setTimeout(resolve, recordMs));
};

/** What Prometheus recorded of its alerts, second by second; it answers 11,000 steps at most. */
const readFirings = async (url: string, begunMs: number): Promise<readonly Firing[]> => {
  const [start, end] = [begunMs / 1_000, Date.now() / 1_000];
  const step = Math.max(1, Math.ceil((end - start) / 10_000));
  const query = encodeURIComponent('ALERTS{alertstate="firing"}');
  const response = await fetch(`${url}/api/v1/query_range?query=${query}&start=${start}&end=${end}&step=${step}`);
  const { data } = (await response.json()) as { data: { result: readonly Series[] } }; // Prometheus's own form
  return data.result.flatMap(({ metric, values }) =>
    values.map(([seconds]) => ({ alert: metric.alertname, atMs: seconds * 1_000 })),
  );
};
