// The table of targets: every parser of bytes that come from outside. Each is loaded when it is opened.
import type { TargetRow } from './target.ts';

type Row = TargetRow & {
  /** Broken on purpose, for the tests of the fuzzer itself; not part of `all`. */
  readonly isSample?: true;
};

export const targets: Readonly<Record<string, Row>> = {
  request: {
    about: 'request heads over a socket, signed or not: documented answers, never a 5xx, and the server still answers',
    open: async () => (await import('./targets/request.ts')).openRequest(),
  },
  private: {
    about: 'requests to the private listener, with and without the token: documented answers, never a 500',
    open: async () => (await import('./targets/private.ts')).openPrivate(),
  },
  query: {
    about: 'targets and queries of every route: only documented errors, and URLSearchParams reads the same arguments',
    open: async () => (await import('./targets/query.ts')).openQuery(),
  },
  report: {
    about:
      'full reports: accepted ones encode back to the same bytes, ox and all our decoders agree, nothing altered verifies',
    open: async () => (await import('./targets/report.ts')).openReport(),
  },
  ingest: {
    about: 'NDJSON: one result for each line, in order, with a documented code, however the bytes are cut into chunks',
    open: async () => (await import('./targets/ingest.ts')).openIngest(),
  },
  resume: {
    about: 'where a mirror resumes, request and answer: only documented errors, and accepted ones survive a round trip',
    open: async () => (await import('./targets/resume.ts')).openResume(),
  },
  'server-frames': {
    about: 'WebSocket frames that a client sends: a documented close code, and other connections still get reports',
    open: async () => (await import('./targets/server-frames.ts')).openServerFrames(),
  },
  'client-frames': {
    about: 'WebSocket frames that a server sends to the SDK: well-formed reports, then a reason or a typed error',
    open: async () => (await import('./targets/client-frames.ts')).openClientFrames(),
  },
  events: {
    about: 'event streams that the SDK reads: the same events as by the format’s own rules, however they are cut',
    open: async () => (await import('./targets/events.ts')).openEvents(),
  },
  answer: {
    about: 'answers of a server to every call of the SDK: a result of the documented form or a SealpostError',
    open: async () => (await import('./targets/answer.ts')).openAnswer(),
  },
  config: {
    about: 'config files and environments: a setting error, or settings that are shown and read again the same',
    open: async () => (await import('./targets/config.ts')).openConfig(),
  },
  scenario: {
    about: 'scenarios of the sandbox: a scenario error, or what the JSON Schema accepts too and what compiles',
    open: async () => (await import('./sandbox/scenario.ts')).openScenario(),
  },
  fault: {
    about: 'faults of the sandbox as text: a fault error, or a fault that survives a round trip through text and JSON',
    open: async () => (await import('./sandbox/fault.ts')).openFault(),
  },
  control: {
    about: 'requests to the control API of a sandbox: documented answers, never a 5xx, and a record that is a scenario',
    open: async () => (await import('./sandbox/control.ts')).openControl(),
  },
  keys: {
    about: 'key files: an error without any part of a key, or keys that open what they sealed, also with a key added',
    open: async () => (await import('./targets/keys.ts')).openKeys(),
  },
  backup: {
    about:
      'backups in which files were cut off, replaced or removed: refused without a store, or restored and verified',
    open: async () => (await import('./targets/backup.ts')).openBackup(),
  },
  records: {
    about: 'records of every table of the embedded engine: what was written, or a CorruptRecordError',
    open: async () => (await import('./targets/records.ts')).openRecords(),
  },
  catalog: {
    about: 'catalog and signers files: a documented error, or streams that survive a round trip',
    open: async () => (await import('./targets/catalog.ts')).openCatalog(),
  },
  tokens: {
    about: 'event IDs and revert data: a documented error, or what was encoded',
    open: async () => (await import('./targets/tokens.ts')).openTokens(),
  },
  files: {
    about: 'files of the command line: recordings, profiles, reports to decode: a typed error or a result',
    open: async () => (await import('./targets/files.ts')).openFiles(),
  },
  paste: {
    about: 'pasted text and opened files of the explorer: accepted exactly if the decoder accepts them',
    open: async () => (await import('./targets/paste.ts')).openPaste(),
  },
  address: {
    about:
      'links to the explorer and what its browser stored: views, filters and alerts that are the same in a new link',
    open: async () => (await import('./targets/address.ts')).openAddress(),
  },
  'sample-broken': {
    about: 'a decoder that trusts a length',
    open: async () => (await import('./targets/sample.ts')).openBroken(),
    isSample: true,
  },
  'sample-hanging': {
    about: 'a decoder that never returns for one input',
    open: async () => (await import('./targets/sample.ts')).openHanging(),
    isSample: true,
  },
};
