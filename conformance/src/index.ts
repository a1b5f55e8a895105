// The package's entry point: the checks of the API, and a run of them against any deployment.
export type { Check, CheckSource } from './check.ts';
export { type CheckOutcome, type ExtensionResult, type RunOptions, type RunReport, runChecks } from './run.ts';
export { checkTable } from './table.ts';
