// Moves sandbox time, and delivers what the simulated network signs meanwhile.
import type { DeliveredReport, Simulation } from '@sealpost/simulator';
import { type EmbeddedSandbox, stepMaxMs } from 'sealpost/sandbox';
import { SandboxError } from './errors.ts';
import { type Duration, parseDuration } from './times.ts';

/** Reports that one call signs: some 20 s of work. */
const reportsMax = 100_000;
/** Reports that are ingested at once. */
const batchReports = 256;

const ingest = async (node: EmbeddedSandbox, reports: readonly DeliveredReport[]): Promise<void> => {
  const results = await node.ingest(reports.map(({ report }) => JSON.stringify(report)));
  const rejected = results.find(({ result }) => result === 'refused');
  if (rejected !== undefined)
    throw new SandboxError('simulated', `A simulated report was rejected: ${rejected.message} (${rejected.code})`);
};

/** Gives every simulated stream the report that is the newest at the start. */
export const startSimulated = async (
  node: EmbeddedSandbox,
  { streams, deliverAt }: Simulation,
  startMs: number,
): Promise<void> => {
  const start = startMs / 1_000;
  const intervals = new Map<string, number>(
    streams.map(({ stream, intervalSeconds }) => [stream.feedId, intervalSeconds]),
  );
  const first: DeliveredReport[] = [];
  for (let second = start - Math.max(...intervals.values()) + 1; second <= start; second += 1)
    for (const delivered of deliverAt(second)) {
      const { feedID, observationsTimestamp } = delivered.report;
      if (observationsTimestamp > start - (intervals.get(feedID) ?? 0)) first.push(delivered);
    }
  await ingest(node, first);
};

/** Moves time by a duration. Reports of a second can be read before time gets past it by more than a batch. */
export const advanceTime = async (
  node: EmbeddedSandbox,
  simulation: Simulation | undefined,
  duration: Duration,
): Promise<void> => {
  const { clock } = node;
  const ms = parseDuration('duration', duration, stepMaxMs, '31 days');
  const toMs = clock.nowMs() + ms;
  if (simulation !== undefined) {
    requireFew(simulation, ms);
    let batch: DeliveredReport[] = [];
    const deliver = async (untilMs: number): Promise<void> => {
      clock.step(Math.max(0, untilMs - clock.nowMs()));
      if (batch.length > 0) await ingest(node, batch);
      batch = [];
    };
    for (let second = Math.floor(clock.nowMs() / 1_000) + 1; second * 1_000 <= toMs; second += 1) {
      batch.push(...simulation.deliverAt(second));
      if (batch.length >= batchReports) await deliver(second * 1_000);
    }
    await deliver(toMs);
  }
  clock.step(Math.max(0, toMs - clock.nowMs()));
};

const requireFew = ({ streams }: Simulation, ms: number): void => {
  const reports = streams.reduce((sum, { intervalSeconds }) => sum + ms / 1_000 / intervalSeconds, 0);
  if (reports > reportsMax)
    throw new SandboxError(
      'duration',
      `duration would make ${Math.round(reports)} reports, expected at most ${reportsMax}. Advance less, or simulate fewer streams.`,
    );
};
