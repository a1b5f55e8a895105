// The package's entry point.

export {
  type Fault,
  type JournaledRequest,
  type Moment,
  type Price,
  type PushOptions,
  SandboxError,
  type SeriesRow,
} from 'sealpost/sandbox';
export type { Duration, SandboxOptions, StreamOption } from './options.ts';
export type { Series } from './sandbox.ts';
export { type Sandbox, type SandboxAccount, type SandboxFault, startSandbox } from './sandbox.ts';
