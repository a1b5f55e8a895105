// Every command of `sealpost` but completion, by name and in the order of the help. Each is loaded when it is needed: all of them take 0.9 s of CPU.
import type { CommandRow } from '../command.ts';

const table: Readonly<Record<string, () => Promise<CommandRow>>> = {
  demo: async () => (await import('./demo/demo.ts')).demoCommand,
  sandbox: async () => (await import('./sandbox/sandbox.ts')).sandboxCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  simulate: async () => (await import('./simulate/simulate.ts')).simulateCommand,
  init: async () => (await import('./init.ts')).initCommand,
  account: async () => (await import('./account/account.ts')).accountCommands,
  secret: async () => (await import('./account/secret.ts')).secretCommands,
  login: async () => (await import('./login.ts')).loginCommand,
  logout: async () => (await import('./login.ts')).logoutCommand,
  profile: async () => (await import('./login.ts')).profileCommands,
  report: async () => (await import('./report/report.ts')).reportCommands,
  candles: async () => (await import('./candles.ts')).candlesCommand,
  sign: async () => (await import('./sign.ts')).signCommand,
  doctor: async () => (await import('./doctor.ts')).doctorCommand,
  conformance: async () => (await import('./conformance/conformance.ts')).conformanceCommand,
  watch: async () => (await import('./watch.ts')).watchCommand,
  ingest: async () => (await import('./ingest/ingest.ts')).ingestCommand,
  follow: async () => (await import('./follow/follow.ts')).followCommand,
  stream: async () => (await import('./stream.ts')).streamCommands,
  signers: async () => (await import('./signers.ts')).signersCommands,
  store: async () => (await import('./store/store.ts')).storeCommands,
  coverage: async () => (await import('./coverage.ts')).coverageCommand,
  export: async () => (await import('./export/export.ts')).exportCommand,
  quarantine: async () => (await import('./quarantine.ts')).quarantineCommands,
  audit: async () => (await import('./audit.ts')).auditCommands,
  config: async () => (await import('./config.ts')).configCommand,
};

/** The command of a name; undefined if there is none. */
export const loadCommand = async (name: string): Promise<CommandRow | undefined> =>
  Object.hasOwn(table, name) ? table[name]?.() : undefined;

export const loadCommands = (): Promise<readonly CommandRow[]> =>
  Promise.all(Object.values(table).map((load) => load()));
