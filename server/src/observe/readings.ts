// Values that are looked up when somebody asks for the metrics.
import { type Aggregator, Gauge, type Registry } from 'prom-client';
import { timedOut, within } from '../runtime/deadline.ts';
import type { Silence } from '../store/freshness.ts';
import { registerStaleness } from './staleness.ts';

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

/** A database that does not answer leaves out its own value, not all of them. */
const readingMaxMs = 500;
/** Readiness is known by then, also when a check does not answer. */
export const readyMaxMs = 1_000;

export const registerReadings = (registry: Registry, readings: Readings): void => {
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
