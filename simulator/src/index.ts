// The package's entry point.

export { type Clock, followClock, type LiveOptions, systemClock } from './follow-clock.ts';
export { generateHistory, type HistoryOptions, workersMax } from './history.ts';
export { type HistoryFiles, historyFileNames, writeHistory } from './history-files.ts';
export { createNetwork, type Network, type NetworkOptions, networkProfiles } from './network.ts';
export type { Effect } from './scenario/effects.ts';
export { backfillMaxSeconds } from './scenario/effects.ts';
export {
  createScenarioSimulation,
  rotatedSeed,
  type ScenarioOptions,
  type ScenarioSimulation,
} from './scenario/scenario-simulation.ts';
export {
  allSpecs,
  createSpecStream,
  defaultSpecs,
  parseSpecName,
  type StreamSpec,
  specsMax,
} from './scenario/stream-specs.ts';
export type { Faults, Gap, Late } from './schedule.ts';
export {
  createSimulation,
  type DeliveredReport,
  observationMax,
  type Simulation,
  type SimulationOptions,
  type TimeRange,
} from './simulation.ts';
export { createCatalog, createStreams, type KindName, kindNames, type SimulatedStream } from './streams.ts';
