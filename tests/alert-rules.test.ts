// The alert rules of deploy/ in promtool: each fires on series of what it is for, and not on series of a deployment that works, whatever its topology.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { findDebianProgram } from './support/debian-programs.ts';
import { readText, root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-alerts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Series by name and labels: values a minute apart, in promtool's notation. */
type AllSeries = Readonly<Record<string, string>>;

const n1 = 'job="sealpost",instance="node1:7402"';
const n2 = 'job="sealpost",instance="node2:7402"';
const requests = 'sealpost_http_server_request_duration_seconds';
const always = (value: number) => `${value}x600`;
const rising = (perMinute: number) => `0+${perMinute}x600`;
const buckets = (name: string, slowPerMinute: number): AllSeries => ({
  [`${name}_bucket{${n1},le="0.01"}`]: rising(100),
  [`${name}_bucket{${n1},le="1"}`]: rising(100 + slowPerMinute),
  [`${name}_bucket{${n1},le="+Inf"}`]: rising(100 + slowPerMinute),
});

/** One process, or the sum of a process and its workers. */
const embedded: AllSeries = {
  [`up{${n1}}`]: always(1),
  [`sealpost_ready{${n1}}`]: always(1),
  [`sealpost_streams_stale{${n1}}`]: always(0),
  [`sealpost_reports_ingested_total{${n1},result="stored"}`]: rising(1_600),
  [`sealpost_reports_ingested_total{${n1},result="conflicting_report"}`]: always(0),
  [`${requests}_count{${n1},http_response_status_code="200"}`]: rising(6_000),
  [`${requests}_count{${n1},http_response_status_code="503"}`]: rising(1),
  ...buckets(requests, 0),
  ...buckets('sealpost_report_ingest_to_visible_seconds', 0),
  ...buckets('sealpost_store_commit_seconds', 0),
  [`sealpost_shed_total{${n1}}`]: always(4),
  [`sealpost_rate_limited_total{${n1}}`]: rising(6),
  [`sealpost_auth_failures_total{${n1},reason="unauthorized"}`]: rising(6),
  [`sealpost_auth_failures_total{${n1},reason="clock_skew"}`]: rising(1),
  [`sealpost_warnings_total{${n1},code="worker_ended"}`]: always(0),
  [`sealpost_warnings_total{${n1},code="tls_reload_failed"}`]: always(0),
  [`sealpost_tls_certificate_end_seconds{${n1}}`]: always(90 * 86_400),
  [`sealpost_live_connections{${n1},http_route="/api/v1/ws"}`]: always(100),
  [`sealpost_live_dropped_total{${n1},reason="too_slow"}`]: always(1),
  [`sealpost_store_damaged_records{${n1}}`]: always(0),
  [`sealpost_secrets_not_opened_total{${n1}}`]: always(0),
  [`sealpost_store_writing_stopped{${n1},part="reports"}`]: always(0),
  [`sealpost_store_stale_readers{${n1}}`]: always(0),
  [`process_start_time_seconds{${n1}}`]: always(1_763_200_000),
  [`process_resident_memory_bytes{${n1}}`]: always(200_000_000),
  [`process_open_fds{${n1}}`]: always(200),
  [`process_max_fds{${n1}}`]: always(65_536),
  [`nodejs_eventloop_lag_p99_seconds{${n1}}`]: always(0.012),
};

/** Two nodes on PostgreSQL with a replica: only one gets reports from the source. */
const nodes: AllSeries = {
  ...embedded,
  [`up{${n2}}`]: always(1),
  [`sealpost_ready{${n2}}`]: always(1),
  [`sealpost_streams_stale{${n2}}`]: always(0),
  [`sealpost_reports_ingested_total{${n2},result="stored"}`]: always(0),
  [`sealpost_store_following_stopped{${n2}}`]: always(0),
  [`sealpost_store_commits_lost{${n2}}`]: always(0),
  [`sealpost_store_durability_reduced{${n2}}`]: always(0),
  [`sealpost_store_statement_failures_total{${n2},reason="away"}`]: always(3),
  [`sealpost_store_history_reads_total{${n2},by="replica"}`]: rising(60),
  [`sealpost_store_history_reads_total{${n2},by="behind"}`]: rising(6),
  [`sealpost_store_history_reads_total{${n2},by="away"}`]: always(0),
};

/** Deployments that work. */
const calm: Readonly<Record<string, AllSeries>> = {
  'one process, or with workers': embedded,
  'nodes on PostgreSQL with read replicas': nodes,
  'no request and no TLS': {
    ...embedded,
    [`${requests}_count{${n1},http_response_status_code="200"}`]: always(0),
    [`${requests}_count{${n1},http_response_status_code="503"}`]: always(0),
    [`sealpost_rate_limited_total{${n1}}`]: always(0),
    [`sealpost_tls_certificate_end_seconds{${n1}}`]: '_x600',
  },
  'closed markets, or a mirror of them: nothing is stored': {
    ...embedded,
    [`sealpost_reports_ingested_total{${n1},result="stored"}`]: always(500),
  },
};

/** What each alert is for, as changes to the nodes. */
const causes: Readonly<Record<string, AllSeries>> = {
  NodeDown: { [`up{${n2}}`]: always(0) },
  NodeNotReady: { [`sealpost_ready{${n2}}`]: always(0) },
  NothingStored: {
    [`sealpost_reports_ingested_total{${n1},result="stored"}`]: always(500),
    [`sealpost_streams_stale{${n1}}`]: always(26),
  },
  ConflictingReport: { [`sealpost_reports_ingested_total{${n1},result="conflicting_report"}`]: rising(1) },
  StreamsStale: { [`sealpost_streams_stale{${n2}}`]: always(1) },
  ServerErrors: { [`${requests}_count{${n1},http_response_status_code="503"}`]: rising(100) },
  SlowRequests: buckets(requests, 5),
  Shedding: { [`sealpost_shed_total{${n1}}`]: rising(60) },
  SlowToVisible: buckets('sealpost_report_ingest_to_visible_seconds', 5),
  SlowCommits: buckets('sealpost_store_commit_seconds', 5),
  ClockSkew: { [`sealpost_auth_failures_total{${n1},reason="clock_skew"}`]: rising(60) },
  AuthFailures: { [`sealpost_auth_failures_total{${n1},reason="unauthorized"}`]: rising(600) },
  CrashLoop: { [`process_start_time_seconds{${n1}}`]: rising(60) },
  WorkersEnd: { [`sealpost_warnings_total{${n1},code="worker_ended"}`]: rising(1) },
  CertificateRejected: { [`sealpost_warnings_total{${n1},code="tls_reload_failed"}`]: rising(1) },
  CertificateExpired: { [`sealpost_tls_certificate_end_seconds{${n1}}`]: always(86_400) },
  CertificateExpires: { [`sealpost_tls_certificate_end_seconds{${n1}}`]: always(10 * 86_400) },
  LiveReadersLost: { [`sealpost_live_connections{${n1},http_route="/api/v1/ws"}`]: '100x89 40x300' },
  SlowReaders: { [`sealpost_live_dropped_total{${n1},reason="too_slow"}`]: rising(1) },
  RateLimited: { [`sealpost_rate_limited_total{${n1}}`]: rising(3_000) },
  BusyLoop: { [`nodejs_eventloop_lag_p99_seconds{${n1}}`]: always(0.2) },
  MemoryGrows: { [`process_resident_memory_bytes{${n1}}`]: '200000000+1000000x600' },
  FewDescriptors: { [`process_open_fds{${n1}}`]: always(60_000) },
  StaleStoreReaders: { [`sealpost_store_stale_readers{${n1}}`]: always(2) },
  WritingStopped: { [`sealpost_store_writing_stopped{${n1},part="reports"}`]: always(1) },
  FollowingStopped: { [`sealpost_store_following_stopped{${n2}}`]: always(1) },
  CommitsLost: { [`sealpost_store_commits_lost{${n2}}`]: always(1) },
  DurabilityReduced: { [`sealpost_store_durability_reduced{${n2}}`]: always(1) },
  StoreDamaged: { [`sealpost_store_damaged_records{${n1}}`]: always(1) },
  SecretsNotOpened: { [`sealpost_secrets_not_opened_total{${n1}}`]: rising(1) },
  DatabaseFails: { [`sealpost_store_statement_failures_total{${n2},reason="away"}`]: rising(5) },
  ReplicaBehind: { [`sealpost_store_history_reads_total{${n2},by="behind"}`]: rising(200) },
};

/** Which of these alerts, or of all, fire after 90 minutes, or after eight hours where a rule looks back for six. */
const unitTest = (name: string, series: AllSeries, alerts: readonly string[] | undefined) => ({
  name,
  interval: '1m',
  input_series: Object.entries(series).map(([one, values]) => ({ series: one, values })),
  promql_expr_test: (alerts ?? ['']).map((alert) => ({
    expr: `count(max by (alertname) (ALERTS{alertstate="firing"${alert && `,alertname="${alert}"`}})) or vector(0)`,
    eval_time: alert === 'MemoryGrows' ? '480m' : '90m',
    exp_samples: [{ labels: '{}', value: alerts === undefined ? 0 : 1 }],
  })),
});

/** Causes that change different series, together: promtool evaluates every rule in each test. */
const groupCauses = (): readonly (readonly [alerts: string[], changes: Record<string, string>])[] => {
  const groups: [string[], Record<string, string>][] = [];
  for (const [alert, changes] of Object.entries(causes)) {
    const isAlone = ['NodeDown', 'MemoryGrows'].includes(alert); // what is down has no other alert, and eight hours are long
    const fits = ([alerts, changed]: (typeof groups)[number]): boolean =>
      alerts[0] !== 'NodeDown' && alerts[0] !== 'MemoryGrows' && !Object.keys(changes).some((one) => one in changed);
    const group = isAlone ? undefined : groups.find(fits);
    if (group === undefined) groups.push([[alert], { ...changes }]);
    else {
      group[0].push(alert);
      Object.assign(group[1], changes);
    }
  }
  return groups;
};

test('alerts: each fires on what it is for, and none on a deployment that works', ({ skip }) => {
  const promtool = findDebianProgram('promtool');
  if (!('path' in promtool)) return skip(promtool.missing);
  const rules = readText('deploy/prometheus/alerts.yaml');
  const alerts = [...rules.matchAll(/^ +- alert: (\w+)$/gm)].map(([, name]) => name);
  expect(Object.keys(causes).toSorted()).toEqual(alerts.toSorted());
  const tests = [
    ...Object.entries(calm).map(([name, series]) => unitTest(name, series, undefined)),
    ...groupCauses().map(([fired, changes]) => unitTest(fired.join(), { ...nodes, ...changes }, fired)),
  ];
  const path = join(folder, 'alerts.json'); // JSON is YAML
  const settings = { rule_files: [join(root, 'deploy/prometheus/alerts.yaml')], evaluation_interval: '1m', tests };
  writeFileSync(path, JSON.stringify(settings));
  expect(execFileSync(promtool.path, ['test', 'rules', path], { encoding: 'utf8' })).toContain('SUCCESS');
});
