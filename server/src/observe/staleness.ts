// Two metrics of how stale streams are, from a pass over all streams in slices when metrics are requested.
import { Gauge, type Registry } from 'prom-client';

/** Streams per slice, about 2 ms; other work runs in between. */
const stalenessSlice = 50;

/** The greatest of some values, and how many are above a bound, in slices. */
const summarize = async (values: Iterable<number>, bound: number) => {
  let [greatest, above, seen] = [0, 0, 0];
  for (const one of values) {
    if (++seen % stalenessSlice === 0) await new Promise((resolve) => setImmediate(resolve));
    if (Number.isFinite(one)) greatest = Math.max(greatest, one);
    if (one > bound) above += 1;
  }
  return { greatest, above };
};

// Both values come from one pass over the streams, made when the first of them is collected.
export const registerStaleness = (
  registry: Registry,
  read: () => Iterable<number>,
  staleAfterSeconds: number,
): void => {
  let pass: Promise<void> | undefined;
  const look = async (): Promise<void> => {
    try {
      const { greatest: most, above } = await summarize(read(), staleAfterSeconds);
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
    help: 'Seconds since the newest observation of the stalest stream that has one.',
    aggregator: 'max',
    registers: [registry],
    collect,
  });
  const stale = new Gauge({
    name: 'sealpost_streams_stale',
    help: 'Streams staler than the threshold, or without any observation.',
    aggregator: 'max',
    registers: [registry],
    collect,
  });
};
