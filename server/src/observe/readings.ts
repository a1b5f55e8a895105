// Values that are looked up when somebody asks for the metrics.
import { type Aggregator, Gauge, type Registry } from 'prom-client';
import { timedOut, within } from '../runtime/deadline.ts';
import { registerStaleness } from './staleness.ts';

/** One that throws or takes too long leaves its metric without a value, not the others. */
export type Readings = {
  /** Requests that came in and are not answered yet. */
  readonly activeRequests: () => number;
  /** For each stream that should be moving, seconds since its newest observation; Infinity when it has none. */
  readonly stalenessSeconds: () => Iterable<number>;
  readonly storeMapBytes: () => number | Promise<number>;
};

/** A database that does not answer leaves out its own value, not all of them. */
const readingMaxMs = 500;

export const registerReadings = (registry: Registry, readings: Readings, staleAfterSeconds: number): void => {
  const read = (name: string, help: string, aggregator: Aggregator, reading: () => number | Promise<number>) => {
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
          const value = await within(readingMaxMs, underWay);
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
  registerStaleness(registry, readings.stalenessSeconds, staleAfterSeconds);
};
