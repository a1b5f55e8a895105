// The package's entry point.
export {
  type Fault,
  type JournaledRequest,
  type Moment,
  type Price,
  type PushOptions,
  SandboxError,
} from 'sealpost/sandbox';
export type { SandboxOptions, StreamOption } from './options.ts';
export { type Sandbox, type SandboxFault, startSandbox } from './sandbox.ts';
export type { Duration } from './times.ts';
