// Measures streams for the table of the status page: those in view, again and again while the page is visible, 100 in a request, within the rate limit.
import { type Signal, signal } from '@preact/signals';
import { type Client, SealpostError } from '@sealpost/client';
import { useEffect, useMemo } from 'preact/hooks';
import { createBatches } from '../state/batches.ts';
import { useExplorer } from '../state/explorer.ts';
import { type Measured, measuredRange, toMeasured } from './availability.ts';

/** How often the streams in view are measured. */
const everyMs = 30_000;
/** Between two requests: 100 streams cost 25 tokens, and an account has 10 per second. */
const pauseMs = 3_000;
/** Requests that may be refused for the rate limit, which another tab may have used up, before it is an error. */
const refusalsMax = 3;

export type Measurements = {
  readonly measured: Signal<ReadonlyMap<string, Measured>>;
  readonly failure: Signal<unknown>;
  /** Measures these streams, those that are not known yet alone unless `again`. */
  readonly measure: (feedIds: readonly string[], again?: boolean) => void;
};

export function createMeasurements(
  client: Pick<Client, 'coverageMany'>,
  nowMs: () => number,
  signalOf: AbortSignal,
  sleep: (ms: number) => Promise<unknown> = (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
): Measurements {
  const measured = signal<ReadonlyMap<string, Measured>>(new Map());
  const failure = signal<unknown>(undefined);
  const read = async (feedIds: readonly string[], refusals = 1): Promise<void> => {
    const range = measuredRange(nowMs());
    try {
      const { streams } = await client.coverageMany(feedIds, range, { signal: signalOf });
      if (signalOf.aborted) return;
      const next = new Map(measured.value);
      for (const coverage of streams) next.set(coverage.feedID, toMeasured(coverage, range, nowMs()));
      measured.value = next;
      failure.value = undefined;
    } catch (error) {
      const isLimited = error instanceof SealpostError && error.code === 'rate_limited' && refusals < refusalsMax;
      if (signalOf.aborted || !isLimited) throw error;
      await sleep(pauseMs);
      return read(feedIds, refusals + 1);
    }
  };
  const load = (feedIds: readonly string[]): Promise<void> =>
    read(feedIds).catch((error: unknown) => {
      if (!signalOf.aborted) failure.value = error;
      throw error;
    });
  const batches = createBatches({ load, signal: signalOf, pauseMs });
  return {
    measured,
    failure,
    measure: (feedIds, again = false) =>
      batches.load(again ? feedIds : feedIds.filter((feedId) => !measured.peek().has(feedId))),
  };
}

/** Measures the wanted streams now, and again every 30 seconds while the page is visible. */
export function useMeasurements(feedIds: readonly string[]): Measurements {
  const { session, clock } = useExplorer();
  const client = session.client.value;
  const { measurements, ended } = useMemo(() => {
    const ended = new AbortController();
    return { ended, measurements: createMeasurements(client, () => clock.nowMs.peek(), ended.signal) };
  }, [client, clock]);
  useEffect(() => () => ended.abort(), [ended]);
  const key = feedIds.join();
  useEffect(() => {
    measurements.measure(feedIds);
    const again = (): void => {
      if (!document.hidden) measurements.measure(feedIds, true);
    };
    const timer = setInterval(again, everyMs);
    document.addEventListener('visibilitychange', again);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', again);
    };
  }, [measurements, key]);
  return measurements;
}
