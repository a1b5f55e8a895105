// The package's entry point.
export type { Fault, JournaledRequest } from 'sealpost/sandbox';
export { SandboxError } from './errors.ts';
export type { SandboxOptions, StreamOption } from './options.ts';
export type { Price } from './prices.ts';
export type { PushOptions } from './push.ts';
export { type Sandbox, type SandboxFault, startSandbox } from './sandbox.ts';
export type { Duration, Moment } from './times.ts';
