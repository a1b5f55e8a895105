// The metrics: what is counted, under which names (sealpost_ and OpenTelemetry's, in Prometheus spelling), and how the values of several processes
// add up. A test compares them with docs/metrics.md. No label contains a user, a stream or a raw path.
import { isLive, type Route, routes } from '@sealpost/protocol';
import { type Aggregator, AggregatorRegistry, Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { type DropReason, dropReasons } from '../connections/guard.ts';
import type { RequestEvent } from '../http/pipeline.ts';
import { type ServedName, servedLabels } from '../http/target.ts';
import { rejections } from '../ingest/rejections.ts';
import { endings } from '../live/connections.ts';
import type { LiveEvent } from '../live/tally.ts';
import { historyReaders, type StoreEvent, statementFailures } from '../store/store-event.ts';
import { countedCodes, type Listener, warningCodes } from './observe.ts';
import { type Readings, registerReadings } from './readings.ts';
import { createStoreMetrics } from './store-metrics.ts';

export type MetricsOptions = {
  readonly readings: Readings;
  /** Also those of the process itself, such as its memory, by default. prom-client cannot end their observers, so they stay in memory until it exits. */
  readonly ofProcess?: boolean;
};

type Labels = Readonly<Record<string, string | number>>;

/** The values of one metric, as JSON can carry them from process to process. */
export type MetricValues = {
  readonly name: string;
  readonly help: string;
  readonly type: string;
  /** How the values of several processes become one. */
  readonly aggregator: Aggregator;
  readonly values: readonly { readonly value: number; readonly labels: Labels; readonly metricName?: string }[];
};

export type Metrics = {
  readonly observe: Listener;
  /** All values of this process, as of now. */
  readonly values: () => Promise<readonly MetricValues[]>;
};

/** The format that `renderMetrics` writes. */
export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE;

/** Creates the metrics of this process, with their own registry. */
export const createMetrics = ({ readings, ofProcess = true }: MetricsOptions): Metrics => {
  const registry = new Registry();
  const requests = createRequestMetrics(registry);
  const countReports = createReportCounts(registry);
  const visible = createHistogram(
    'sealpost_report_ingest_to_visible_seconds',
    'From a report’s arrival until readers see it.',
  );
  const committed = createHistogram('sealpost_store_commit_seconds', 'Time that a durable commit takes.');
  const addVisible = visible.series({});
  const addCommitted = committed.series({});
  const observeStore = createStoreMetrics(registry);
  const database = createDatabaseMetrics(registry);
  const live = createLiveMetrics(registry);
  const countWarning = createCounts(registry, 'sealpost_warnings_total', 'Warnings, by code.', 'code', warningCodes);
  registerReadings(registry, readings);
  if (ofProcess) collectDefaultMetrics({ register: registry });
  return {
    observe: (observation) => {
      switch (observation.kind) {
        case 'request':
          return requests.answered(observation);
        case 'connectionDropped':
          return requests.dropped(observation.reason);
        case 'secretNotOpened':
          return requests.secretNotOpened();
        case 'ingested':
          return countReports(observation.result, observation.count);
        case 'refused':
          return countReports(observation.code, 1);
        case 'committed':
          return addCommitted(observation.seconds, 1);
        case 'staleReaders':
        case 'damaged':
        case 'endedUnexpectedly':
        case 'followingStopped':
        case 'followingResumed':
        case 'durabilityReduced':
        case 'durabilityRestored':
        case 'commitsLost':
        case 'writingStopped':
        case 'writingResumed':
        case 'threadEnded':
        case 'reportsDeleted':
          return observeStore(observation);
        case 'statements':
        case 'statementFailed':
        case 'historyRead':
          return database(observation);
        case 'visible':
          return addVisible(observation.seconds, observation.count);
        case 'liveOpened':
        case 'liveDelivered':
        case 'liveEnded':
          return live(observation);
        case 'warning':
          return countWarning(observation.code, 1);
        case 'adminReloadFailed':
          return countWarning('admin_reload_failed', 1);
        case 'adminReloadRecovered': // the counter stands still
          return;
      }
    },
    values: async () => [
      ...[requests.duration, visible, committed].map((histogram) => histogram.values()),
      ...toValues(await registry.getMetricsAsJSON()),
    ],
  };
};

// OpenTelemetry's buckets, and three below them: reads here take less than a millisecond.
const bucketSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

type Series = { readonly labels: Labels; readonly counts: number[]; sum: number };

/** Adds `count` values of the same size to a series. */
type Add = (seconds: number, count: number) => void;

/**
 * A histogram of seconds that takes many values of the same size at once, as a batch of reports brings them. prom-client's own takes them one by
 * one, at 1.1 µs each; used for requests it would add 1.3 % to each.
 */
const createHistogram = (name: string, help: string) => {
  const all: Series[] = [];
  return {
    /** Begins a series. */
    series: (labels: Labels): Add => {
      const series: Series = { labels, counts: new Array(bucketSeconds.length + 1).fill(0), sum: 0 };
      all.push(series);
      return (seconds, count) => {
        let bucket = 0;
        while (bucket < bucketSeconds.length && seconds > (bucketSeconds[bucket] as number)) bucket += 1; // within bounds
        series.counts[bucket] = (series.counts[bucket] as number) + count; // one more count than buckets
        series.sum += seconds * count;
      };
    },
    values: (): MetricValues => ({
      name,
      help,
      type: 'histogram',
      aggregator: 'sum',
      values: all.flatMap((series) => seriesValues(name, series)),
    }),
  };
};

const seriesValues = (name: string, { labels, counts, sum }: Series): MetricValues['values'] => {
  let total = 0;
  const buckets = counts.map((count, i) => {
    total += count;
    return { metricName: `${name}_bucket`, labels: { le: bucketSeconds[i] ?? '+Inf', ...labels }, value: total };
  });
  return [
    ...buckets,
    { metricName: `${name}_sum`, labels, value: sum },
    { metricName: `${name}_count`, labels, value: total },
  ];
};

/** Counts by one label whose values are all there from the start: Prometheus sees no increase in a series that just appeared. */
const createCounts = (registry: Registry, name: string, help: string, label: string, values: readonly string[]) => {
  const counter = new Counter({ name, help, labelNames: [label], registers: [registry] });
  for (const value of values) counter.inc({ [label]: value }, 0);
  return (value: string, count: number): void => counter.inc({ [label]: value }, count);
};

const createReportCounts = (registry: Registry) =>
  createCounts(registry, 'sealpost_reports_ingested_total', 'Reports that came in, by result.', 'result', [
    'stored',
    'duplicate',
    ...Object.keys(rejections),
  ]);

const createRequestMetrics = (registry: Registry) => {
  const duration = createHistogram(
    'sealpost_http_server_request_duration_seconds',
    'Requests, with the time to their answers.',
  );
  const seriesOf = createRequestSeries(createRequestCounts(registry, duration.series));
  const authFailures: readonly string[] = countedCodes.authFailure;
  const limited: readonly string[] = countedCodes.rateLimited;
  const shedding: readonly string[] = countedCodes.shed;
  const registers = [registry];
  const countFailure = createCounts(
    registry,
    'sealpost_auth_failures_total',
    'Requests that were not let in, by reason.',
    'reason',
    authFailures,
  );
  const notOpened = new Counter({
    name: 'sealpost_secrets_not_opened_total',
    help: 'Attempts to open a stored secret that failed; its user gets 401.',
    registers,
  });
  const rateLimited = new Counter({ name: 'sealpost_rate_limited_total', help: 'Requests over a limit.', registers });
  const shed = new Counter({ name: 'sealpost_shed_total', help: 'Requests and connections turned away.', registers });
  const countDropped = createCounts(
    registry,
    'sealpost_connections_dropped_total',
    'Connections closed without an answer or in the middle of one, by reason.',
    'reason',
    dropReasons,
  );
  return {
    duration,
    secretNotOpened: () => notOpened.inc(),
    answered: ({ route, method, status, code, durationMs }: RequestEvent): void => {
      seriesOf(route, method, status)(durationMs / 1_000, 1);
      if (code === null) return;
      if (authFailures.includes(code)) countFailure(code, 1);
      if (limited.includes(code)) rateLimited.inc();
      if (shedding.includes(code)) shed.inc();
    },
    dropped: (reason: DropReason): void => {
      shed.inc();
      countDropped(reason, 1);
    },
  };
};

const createDatabaseMetrics = (registry: Registry) => {
  const active = new Gauge({
    name: 'sealpost_store_statements_active',
    help: 'Readings that wait for a connection to the database or run on one.',
    registers: [registry],
  });
  const countFailure = createCounts(
    registry,
    'sealpost_store_statement_failures_total',
    'Readings that the database did not answer, by reason.',
    'reason',
    statementFailures,
  );
  const countHistory = createCounts(
    registry,
    'sealpost_store_history_reads_total',
    'Readings of history where there are replicas, by who answered and why.',
    'by',
    historyReaders,
  );
  return (event: StoreEvent): void => {
    if (event.kind === 'statements') active.inc(event.change);
    else if (event.kind === 'statementFailed') countFailure(event.reason, 1);
    else if (event.kind === 'historyRead') countHistory(event.by, 1);
  };
};

const createLiveMetrics = (registry: Registry) => {
  const registers = [registry];
  const paths = Object.values<Route>(routes).flatMap((route) => (isLive(route) ? [route.path] : []));
  const open = new Gauge({
    name: 'sealpost_live_connections',
    help: 'Live connections that are open.',
    labelNames: ['http_route'],
    registers,
  });
  for (const path of paths) open.set({ http_route: path }, 0);
  const sent = createCounts(
    registry,
    'sealpost_live_messages_total',
    'Reports sent to live readers.',
    'http_route',
    paths,
  );
  const dropped = createCounts(
    registry,
    'sealpost_live_dropped_total',
    'Live connections that the server ended, by reason.',
    'reason',
    Object.keys(endings),
  );
  return (event: LiveEvent): void => {
    const { path } = routes[event.route];
    if (event.kind === 'liveDelivered') sent(path, event.count);
    else open.inc({ http_route: path }, event.kind === 'liveOpened' ? 1 : -1);
    if (event.kind === 'liveEnded' && event.reason !== null) dropped(event.reason, 1);
  };
};

/**
 * Begins to count the answers of a route, method and status. Failed ones are measured by status alone and counted by route in a counter: a histogram is
 * 17 series, and most pairs of a route and a status are failures (D166).
 */
const createRequestCounts = (registry: Registry, begin: (labels: Labels) => Add) => {
  const failed = new Counter({
    name: 'sealpost_http_server_failed_requests_total',
    help: 'Requests answered with a status from 400 on.',
    labelNames: ['http_request_method', 'http_route', 'http_response_status_code'],
    registers: [registry],
  });
  const durations = new Map<number, Add>();
  return (method: string, route: string, status: number): Add => {
    const labels = { http_request_method: method, http_route: route, http_response_status_code: status };
    if (status < 400) return begin(labels);
    const counts = failed.labels(labels);
    const add = durations.get(status) ?? begin({ http_response_status_code: status });
    durations.set(status, add);
    return (seconds, count) => {
      add(seconds, count);
      counts.inc(count);
    };
  };
};

// Those the API answers. Others, real or invented, share a value, so that a scanner cannot make series.
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Finds the series of a route, method and status: nested, so that the look-up, which every request makes, makes no text. */
const createRequestSeries = <S>(begin: (method: string, route: string, status: number) => S) => {
  const known = new Map<ServedName | null, Map<string, Map<number, S>>>();
  const add = (route: ServedName | null, method: string, status: number): S => {
    const byMethod = known.get(route) ?? new Map<string, Map<number, S>>();
    const byStatus = byMethod.get(method) ?? new Map<number, S>();
    const series = begin(method, route === null ? 'unmatched' : servedLabels[route], status);
    known.set(route, byMethod.set(method, byStatus.set(status, series)));
    return series;
  };
  return (route: ServedName | null, method: string, status: number): S => {
    const shownMethod = knownMethods.has(method) ? method : '_OTHER';
    return known.get(route)?.get(shownMethod)?.get(status) ?? add(route, shownMethod, status);
  };
};

// prom-client would show the mean of all processes' loops, which hides the one that is stuck, and no start time at all.
const worstOfAll: ReadonlySet<string> = new Set([
  'nodejs_eventloop_lag_seconds',
  'nodejs_eventloop_lag_p90_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'process_start_time_seconds',
]);

const toValues = (exported: readonly object[]): readonly MetricValues[] => {
  const metrics = exported as readonly MetricValues[]; // what prom-client gives, though it declares `type` a number
  return metrics.map(({ name, help, type, aggregator, values }) => ({
    name,
    help,
    type,
    aggregator: worstOfAll.has(name) ? 'max' : aggregator,
    // JSON has no NaN, which is the mean of a loop that was not watched yet.
    values: values.filter(({ value }) => Number.isFinite(value)),
  }));
};

/** Adds up the values of several processes; of what is not a count, the worst or the mean is kept, as each metric says. */
export const sumMetrics = async (parts: readonly (readonly MetricValues[])[]): Promise<readonly MetricValues[]> =>
  toValues(await AggregatorRegistry.aggregate([...parts]).getMetricsAsJSON());

/** What a process that is gone leaves to the sum, its counts: without them a total would fall, which looks like a restart. */
export const totalsOf = (values: readonly MetricValues[]): readonly MetricValues[] =>
  values.filter(({ type }) => type === 'counter' || type === 'histogram');

/** Writes values as the text that Prometheus reads. */
export const renderMetrics = (values: readonly MetricValues[]): Promise<string> =>
  AggregatorRegistry.aggregate([values]).metrics();
