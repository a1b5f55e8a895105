// Two metrics of how stale streams are, from a pass over all streams in slices when metrics are requested.
import { Gauge, type Registry } from 'prom-client';
import type { Silence } from '../store/freshness.ts';

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
export const registerStaleness = (registry: Registry, read: () => Iterable<Silence>): void => {
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
