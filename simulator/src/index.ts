// The package's one door.
export { generateHistory, type HistoryOptions } from './history.ts';
export { type Clock, followClock, type LiveOptions, systemClock } from './live.ts';
export { createNetwork, type Network, type NetworkOptions, networkProfiles } from './network.ts';
export type { Faults, Gap, Late } from './schedule.ts';
export {
  createSimulation,
  type DeliveredReport,
  type Simulation,
  type SimulationOptions,
  type Span,
} from './simulation.ts';
export { createCatalog, createStreams, type SimulatedStream } from './streams.ts';
