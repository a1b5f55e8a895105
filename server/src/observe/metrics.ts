// The metrics: what is counted, under which names (sealpost_ and OpenTelemetry's, in Prometheus spelling), and how the values of several processes
// add up. A test compares them with docs/metrics.md. No label contains a user, a stream or a raw path.
import { isLive, type Route, routes } from '@sealpost/protocol';
import {
  type Aggregator,
  AggregatorRegistry,
  Counter,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  Registry,
} from 'prom-client';
import { type DropReason, dropReasons } from '../connections/connection-limits.ts';
import type { RequestEvent } from '../http/pipeline.ts';
import { type ServedName, servedLabels } from '../http/target.ts';
import { rejections } from '../ingest/rejections.ts';
import type { LiveEvent } from '../live/connections.ts';
import { endings } from '../live/connections.ts';
import { timedOut, within } from '../runtime/deadline.ts';
import { replacedThreads } from '../runtime/threads.ts';
import type { Silence } from '../store/freshness.ts';
import { writingParts } from '../store/store.ts';
import { historyReaders, type StoreEvent, statementFailures } from '../store/store-event.ts';
import { countedCodes, type Listener, warningCodes } from './observe.ts';

/** One that throws or takes too long leaves its metric without a value, not the others. */
export type Readings = {
  /** Requests that came in and are not answered yet. */
  readonly activeRequests: () => number;
  /** Of each stream that should be moving. */
  readonly silences: () => Iterable<Silence>;
  /** Does /readyz answer 200? */
  readonly isReady: () => Promise<boolean>;
  /** When the first certificate of this node expires; Infinity where there is none. */
  readonly certificateEndMs: () => number;
  readonly storeMapBytes: () => number | Promise<number>;
};

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
export function createMetrics({ readings, ofProcess = true }: MetricsOptions): Metrics {
  const registry = new Registry();
  const requests = createRequestMetrics(registry);
  const countReports = createReportCounts(registry);
  const visible = createHistogram(
    registry,
    'sealpost_report_ingest_to_visible_seconds',
    'From a report’s arrival until readers see it.',
  );
  const committed = createHistogram(registry, 'sealpost_store_commit_seconds', 'Time that a durable commit takes.');
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
          return committed.observe(observation.seconds);
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
          for (let i = 0; i < observation.count; i++) visible.observe(observation.seconds);
          return;
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
    values: async () => toValues(await registry.getMetricsAsJSON()),
  };
}

// OpenTelemetry's buckets, and three below them: reads here take less than a millisecond.
const bucketSeconds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const createHistogram = (registry: Registry, name: string, help: string, labelNames: readonly string[] = []) =>
  new Histogram({ name, help, labelNames: [...labelNames], buckets: bucketSeconds, registers: [registry] });

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
  const countRequest = createRequestCounts(registry);
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
    secretNotOpened: () => notOpened.inc(),
    answered: ({ route, method, status, code, durationMs }: RequestEvent): void => {
      countRequest(route, method, status, durationMs / 1_000);
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

// Those the API answers. Others, real or invented, share a value, so that a scanner cannot make series.
const knownMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

const requestLabels = ['http_request_method', 'http_route', 'http_response_status_code'] as const;

/**
 * Counts answers by method, route and status. Failed ones are measured by status alone and counted by route in a counter: a histogram is 17 series, and
 * most pairs of a route and a status are failures (D166).
 */
const createRequestCounts = (registry: Registry) => {
  const duration = createHistogram(
    registry,
    'sealpost_http_server_request_duration_seconds',
    'Requests, with the time to their answers.',
    requestLabels,
  );
  const failed = new Counter({
    name: 'sealpost_http_server_failed_requests_total',
    help: 'Requests answered with a status from 400 on.',
    labelNames: requestLabels,
    registers: [registry],
  });
  return (route: ServedName | null, method: string, status: number, seconds: number): void => {
    const labels = {
      http_request_method: knownMethods.has(method) ? method : '_OTHER',
      http_route: route === null ? 'unmatched' : servedLabels[route],
      http_response_status_code: status,
    };
    duration.observe(status < 400 ? labels : { http_response_status_code: status }, seconds);
    if (status >= 400) failed.inc(labels);
  };
};

type StoreTold = Extract<
  StoreEvent,
  {
    kind:
      | 'staleReaders'
      | 'damaged'
      | 'endedUnexpectedly'
      | 'followingStopped'
      | 'followingResumed'
      | 'durabilityReduced'
      | 'durabilityRestored'
      | 'commitsLost'
      | 'writingStopped'
      | 'writingResumed'
      | 'threadEnded'
      | 'reportsDeleted';
  }
>;

const createStoreMetrics = (registry: Registry): ((event: StoreTold) => void) => {
  const gauge = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Gauge({ name, help, labelNames: [...labelNames], aggregator: 'max', registers: [registry] });
  const staleReaders = gauge(
    'sealpost_store_stale_readers',
    'Readers of the store found gone at the last check, a minute ago at most.',
  );
  const damaged = gauge(
    'sealpost_store_damaged_records',
    'Damaged records of the store that were found since the start.',
  );
  const ends = gauge(
    'sealpost_unexpected_ends',
    'Processes in a row that ended without closing the store, before this one.',
  );
  const notFollowing = gauge(
    'sealpost_store_following_stopped',
    '1 while a process does not learn of new reports and changes in the database.',
  );
  const risky = gauge(
    'sealpost_store_durability_reduced',
    '1 while the database can lose what was acknowledged, or keeps commits waiting, by its settings or for lack of standbys.',
  );
  const lost = gauge(
    'sealpost_store_commits_lost',
    'How often since the start the database was found to have lost what it had acknowledged.',
  );
  const stopped = gauge(
    'sealpost_store_writing_stopped',
    '1 while a part of the store cannot be written to, by part.',
    ['part'],
  );
  for (const part of writingParts) stopped.set({ part }, 0);
  const replaced = new Counter({
    name: 'sealpost_threads_replaced_total',
    help: 'Threads that ended and were replaced, by what they do.',
    labelNames: ['thread'],
    registers: [registry],
  });
  for (const thread of replacedThreads) replaced.inc({ thread }, 0);
  const deleted = new Counter({
    name: 'sealpost_reports_deleted_total',
    help: 'Reports that retention deleted.',
    registers: [registry],
  });
  return (event) => {
    if (event.kind === 'staleReaders') staleReaders.set(event.count);
    else if (event.kind === 'damaged') damaged.set(event.total);
    else if (event.kind === 'endedUnexpectedly') ends.set(event.times);
    else if (event.kind === 'followingStopped') notFollowing.set(1);
    else if (event.kind === 'followingResumed') notFollowing.set(0);
    else if (event.kind === 'durabilityReduced') risky.set(1);
    else if (event.kind === 'durabilityRestored') risky.set(0);
    else if (event.kind === 'commitsLost') lost.inc();
    else if (event.kind === 'threadEnded') replaced.inc({ thread: event.thread });
    else if (event.kind === 'reportsDeleted') deleted.inc(event.count);
    else stopped.set({ part: event.part }, event.kind === 'writingStopped' ? 1 : 0);
  };
};

// Values that are looked up when somebody asks for the metrics.

/** A database that does not answer leaves out its own value, not all of them. */
const readingMaxMs = 500;
/** Readiness is known by then, also when a check does not answer. */
export const readyMaxMs = 1_000;

const registerReadings = (registry: Registry, readings: Readings): void => {
  const read = (
    name: string,
    help: string,
    aggregator: Aggregator,
    reading: () => number | Promise<number>,
    maxMs = readingMaxMs,
  ) => {
    let underWay: Promise<number> | undefined;
    new Gauge({
      name,
      help,
      aggregator,
      registers: [registry],
      async collect() {
        try {
          underWay ??= Promise.resolve(reading()).finally(() => {
            underWay = undefined;
          });
          const value = await within(maxMs, underWay);
          if (value === timedOut) throw new Error('it is not read in time');
          this.set(value);
        } catch {
          this.remove({}); // that a value is missing can be seen; that it is old cannot
        }
      },
    });
  };
  read('sealpost_http_server_active_requests', 'Requests under way.', 'sum', readings.activeRequests);
  // All processes read one store, so these values are not added up.
  read('sealpost_store_map_bytes', 'Bytes of the store’s files.', 'max', readings.storeMapBytes);
  const ready = async () => ((await readings.isReady()) ? 1 : 0);
  read('sealpost_ready', 'Whether /readyz answers 200.', 'min', ready, readyMaxMs + 100);
  const certificateEnd = () => readings.certificateEndMs() / 1_000;
  read('sealpost_tls_certificate_end_seconds', 'When the certificate expires, Unix time.', 'min', certificateEnd);
  registerStaleness(registry, readings.silences);
};

/** Streams per slice, about 2 ms; other work runs in between. */
const stalenessSlice = 50;

/** The longest silence, and how many are too long, in slices. */
const summarize = async (silences: Iterable<Silence>) => {
  let [greatest, above, seen] = [0, 0, 0];
  for (const { silentMs, maxMs } of silences) {
    if (++seen % stalenessSlice === 0) await new Promise((resolve) => setImmediate(resolve));
    if (Number.isFinite(silentMs)) greatest = Math.max(greatest, silentMs / 1_000);
    if (silentMs > maxMs) above += 1;
  }
  return { greatest, above };
};

// Both values come from one pass over the streams, made when the first of them is collected.
const registerStaleness = (registry: Registry, read: () => Iterable<Silence>): void => {
  let pass: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    try {
      const { greatest: most, above } = await summarize(read());
      greatest.set(most);
      stale.set(above);
    } catch {
      greatest.remove({});
      stale.remove({});
    }
  };
  const collect = (): Promise<void> => {
    pass ??= look().finally(() => {
      pass = undefined;
    });
    return pass;
  };
  const greatest = new Gauge({
    name: 'sealpost_stream_staleness_seconds',
    help: 'The longest silence of a stream whose market is open.',
    aggregator: 'max',
    registers: [registry],
    collect,
  });
  const stale = new Gauge({
    name: 'sealpost_streams_stale',
    help: 'Streams that are silent for longer than three intervals and a minute, or have no report, while their market is open.',
    aggregator: 'max',
    registers: [registry],
    collect,
  });
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
