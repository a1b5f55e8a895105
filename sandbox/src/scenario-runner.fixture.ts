// A scenario runner over the real simulated network, in this thread, whose reports are kept as lines.

import type { LineResult } from '@sealpost/server/ingest/report-line';
import { createScenarioSimulation, createSpecStream } from '@sealpost/simulator';
import { createSandboxClock, type SandboxClock } from './clock.ts';
import { createFaults } from './faults/faults.ts';
import type { ScenarioAct } from './scenario/compile.ts';
import { parseScenario } from './scenario/parse.ts';
import { compileScenario, type ScenarioRunner, startScenarioRunner } from './scenario-runner.ts';

export type SampleRunner = {
  readonly runner: ScenarioRunner;
  readonly clock: SandboxClock;
  /** Every report so far. */
  readonly lines: readonly string[];
  /** What the administration was told. */
  readonly acts: readonly ScenarioAct[];
  /** Advances time, and resolves when its reports are there. */
  readonly advance: (seconds: number) => Promise<void>;
};

export const sampleStart = Date.parse('2026-03-13T14:30:00Z') / 1_000;

/** Starts the scenario runner of a scenario, paused at the scenario's start. */
export const startSampleRunner = async (json: Record<string, unknown>): Promise<SampleRunner> => {
  const scenario = parseScenario({ streams: ['ETH/USD'], ...json });
  const { seed = 'test', at: startSecond = sampleStart, speed = 1, past = '0s', streams: specs = [] } = scenario;
  const streams = specs.map((spec) => createSpecStream('testnet', spec, startSecond).stream);
  const clock = createSandboxClock({
    startMs: startSecond * 1_000,
    speed,
    paused: true,
    monotonicMs: () => performance.now(),
  });
  const effects = compileScenario({ scenario, startSecond, streams, specs }).flatMap((one) => one.effects);
  const simulation = await createScenarioSimulation({ seed, streams: specs, startSecond, effects });
  const [lines, acts]: [string[], ScenarioAct[]] = [[], []];
  const stored: LineResult = {
    line: 1,
    result: 'stored',
    feedID: null,
    observationsTimestamp: null,
    code: null,
    message: null,
  };
  const runner = await startScenarioRunner({
    clock,
    source: {
      deliver: async (from, to) => {
        const due: string[] = [];
        for (let second = from; second <= to; second += 1)
          for (const { report } of simulation.deliverAt(second)) due.push(JSON.stringify(report));
        return due;
      },
      add: simulation.add,
      close: async () => {},
    },
    faults: createFaults({ seed, nowMs: clock.nowMs }),
    submit: async (batch) => {
      lines.push(...batch);
      return batch.map(() => stored);
    },
    administer: async (act) => void acts.push(act),
    push: async (act) => {
      acts.push(act);
      throw new Error('The sample has no node.');
    },
    seed,
    startSecond,
    past,
    speed,
    specs: scenario.streams ?? specs,
    streams,
    reportsPerSecond: streams.length,
    scenario,
    series: [],
    monotonicMs: () => performance.now(),
  });
  const advance = async (seconds: number): Promise<void> => {
    await runner.set([{ type: 'step', by: `${seconds}s` }]);
  };
  return { runner, clock, lines, acts, advance };
};
