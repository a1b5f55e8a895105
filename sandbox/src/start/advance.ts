// Moves sandbox time, and delivers what the simulated network signs meanwhile.
import type { DeliveredReport, SimulatedStream } from '@sealpost/simulator';
import { type EmbeddedSandbox, SandboxError, type ScenarioAct, stepMaxMs } from './embedded.ts';
import { type Duration, parseDuration } from './options.ts';

/** The simulated network of a sandbox. */
export type Source = {
  readonly streams: readonly SimulatedStream[];
  readonly deliverAt: (second: number) => Iterable<DeliveredReport>;
  /** What a scenario has to be done, in the order of its seconds; what is done is taken out. */
  readonly acts: ScenarioAct[];
  /** History that it starts with. */
  readonly pastSeconds: number;
};

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

/** Gives every simulated stream the report that is the newest at the start, and history where a scenario has some. */
export async function startSimulated(node: EmbeddedSandbox, source: Source, startMs: number): Promise<void> {
  const { streams, deliverAt, pastSeconds } = source;
  requireFew(source, pastSeconds * 1_000);
  await performDue(node, source, startMs / 1_000);
  const start = startMs / 1_000;
  const intervals = new Map<string, number>(
    streams.map(({ stream, intervalSeconds }) => [stream.feedId, intervalSeconds]),
  );
  const first: DeliveredReport[] = [];
  for (let second = start - Math.max(pastSeconds, ...intervals.values()) + 1; second <= start; second += 1)
    for (const delivered of deliverAt(second)) {
      const { feedID, observationsTimestamp } = delivered.report;
      if (observationsTimestamp > start - Math.max(pastSeconds, intervals.get(feedID) ?? 0)) first.push(delivered);
    }
  await ingest(node, first);
}

/** Does what a scenario has up to a second. */
const performDue = async (node: EmbeddedSandbox, { acts }: Source, second: number): Promise<void> => {
  for (let act = acts[0]; act !== undefined && act.second <= second; act = acts[0]) {
    acts.shift();
    await node.perform(act);
  }
};

/** Moves time by a duration. */
export async function advanceTime(
  node: EmbeddedSandbox,
  source: Source | undefined,
  duration: Duration,
): Promise<void> {
  const ms = parseDuration('duration', duration, stepMaxMs, '31 days');
  await moveTime(node, source, node.clock.nowMs() + ms);
}

/** Moves time to a moment, with what simulated streams and a scenario have until then. Reports of a second can be read before time is past its batch. */
export async function moveTime(node: EmbeddedSandbox, source: Source | undefined, toMs: number): Promise<void> {
  const { clock } = node;
  if (source !== undefined) requireFew(source, toMs - clock.nowMs());
  let batch: DeliveredReport[] = [];
  const deliver = async (untilMs: number): Promise<void> => {
    clock.step(Math.max(0, untilMs - clock.nowMs()));
    if (batch.length > 0) await ingest(node, batch);
    batch = [];
  };
  const first = Math.floor(clock.nowMs() / 1_000) + 1;
  for (let second = first; source !== undefined && second * 1_000 <= toMs; second += 1) {
    if ((source.acts[0]?.second ?? Number.POSITIVE_INFINITY) <= second) {
      await deliver(second * 1_000); // what was signed before
      await performDue(node, source, second);
    }
    batch.push(...source.deliverAt(second));
    if (batch.length >= batchReports) await deliver(second * 1_000);
  }
  await deliver(toMs);
}

const requireFew = ({ streams }: Source, ms: number): void => {
  const reports = streams.reduce((sum, { intervalSeconds }) => sum + ms / 1_000 / intervalSeconds, 0);
  if (reports > reportsMax)
    throw new SandboxError(
      'duration',
      `The simulated streams would make ${Math.round(reports)} reports until then, expected at most ${reportsMax}. Advance less, or simulate fewer streams.`,
    );
};
