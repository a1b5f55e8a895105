import { expect, test } from 'vitest';
import { tallyControl } from '../support/full-count.ts';
import { readText } from '../support/source-tree.ts';
import { judgeAlerts, speedUp } from './alerts.ts';

test('alerts: every time of the rules is divided, and nothing else changes', () => {
  const rules = 'expr: rate(x_total[5m]) < 0.5 * y offset 1m and p99{le="5m"} > 0.25\nfor: 30s';
  expect(speedUp(rules, 10)).toBe(
    'expr: rate(x_total[30000ms]) < 0.5 * y offset 6000ms and p99{le="5m"} > 0.25\nfor: 3000ms',
  );
  const shipped = readText('deploy/prometheus/alerts.yaml');
  expect(speedUp(shipped, 10).match(/\d+ms/g)?.length).toBe(shipped.match(/\b\d+[smh]\b(?!,)/g)?.length);
});

const away = { name: 'kill', fromMs: 10_000, toMs: 16_000, alerts: ['NodeDown'] };
const possible = new Set(['NodeDown', 'NodeNotReady']);

test('alerts: one that fired while it was due, or soon after, is there', () => {
  for (const atMs of [13_000, 25_000])
    expect(judgeAlerts([away], [{ alert: 'NodeDown', atMs }], possible)).toEqual({ missed: [], unexpected: [] });
});

test('alerts: one that did not fire, or only before, is missed (control)', () => {
  expect(judgeAlerts([away], [], possible).missed).toEqual(['NodeDown after kill']);
  tallyControl({ 'missing alerts found': 1 });
  expect(judgeAlerts([away], [{ alert: 'NodeDown', atMs: 9_000 }], possible).missed).toEqual(['NodeDown after kill']);
});

test('alerts: one that nothing was done for is unexpected, unless it is about the speed of the machine (control)', () => {
  const firings = ['StoreDamaged', 'SlowCommits', 'NodeDown'].map((alert) => ({ alert, atMs: 12_000 }));
  expect(judgeAlerts([away], firings, possible).unexpected).toEqual(['StoreDamaged']);
});
