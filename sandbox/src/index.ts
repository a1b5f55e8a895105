// The package's entry point.

export {
  type Fault,
  type LoggedRequest,
  type Moment,
  type Price,
  type PushOptions,
  SandboxError,
  type SeriesRow,
} from './start/embedded.ts';
export type { Duration, SandboxOptions, StreamOption } from './start/options.ts';
export type { Series } from './start/start-sandbox.ts';
export { type Sandbox, type SandboxAccount, type SandboxFault, startSandbox } from './start/start-sandbox.ts';
