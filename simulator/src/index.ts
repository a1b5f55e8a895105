// The package's entry point.
export { generateHistory, type HistoryOptions, workersMax } from './history.ts';
export { type HistoryFiles, historyFileNames, writeHistory } from './history-files.ts';
export { type Clock, followClock, type LiveOptions, systemClock } from './live.ts';
export { createNetwork, type Network, type NetworkOptions, networkProfiles } from './network.ts';
export type { Faults, Gap, Late } from './schedule.ts';
export {
  createSimulation,
  type DeliveredReport,
  observationMax,
  type Simulation,
  type SimulationOptions,
  type TimeRange,
} from './simulation.ts';
export { createCatalog, createStreams, type SimulatedStream } from './streams.ts';
