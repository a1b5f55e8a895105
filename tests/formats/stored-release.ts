// A copy of what a release left, opened by the command of this release or of another one.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningPostgres, startPostgres } from '../support/running-postgres.ts';
import type { Answers } from './answers.ts';
import { createOperator, type Operator } from './operator.ts';
import { readPacked, unpackFolder } from './packed-files.ts';
import { type Dump, loadSchema } from './postgres-dump.ts';
import type { Written } from './write-store.ts';

export const engines = ['lmdb', 'postgres'] as const;
type Engine = (typeof engines)[number];

export type Expected = Omit<Written, 'later'> & {
  /** The key that seals the secrets, in hex. */
  readonly key: string;
  readonly answers: Answers;
  readonly records: Readonly<Record<string, unknown>>;
  /** The answer of POST /ingest/resume. */
  readonly mirror: unknown;
};

export type StoredRelease = {
  readonly expected: Expected;
  /** Lines of reports that the store does not have yet. */
  readonly later: readonly string[];
  /** The operator, with the command of this release or the one that is given. */
  readonly operate: (command?: string) => Operator;
  readonly postgres: RunningPostgres | undefined;
  readonly remove: () => Promise<void>;
};

export const openStoredRelease = async (release: string, engine: Engine): Promise<StoredRelease> => {
  const from = join(release, engine);
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-upgrade-'));
  const [store, keyFile] = [join(folder, 'store'), join(folder, 'sealpost.key')];
  const expected = JSON.parse(readPacked(join(from, 'expected.json')).toString()) as Expected; // written by make.ts
  const later = readPacked(join(from, 'later.ndjson')).toString().trim().split('\n');
  writeFileSync(keyFile, `${expected.key}\n`, { mode: 0o600 });
  const postgres = engine === 'postgres' ? await startPostgres() : undefined;
  if (postgres === undefined) unpackFolder(join(from, 'store'), store);
  else await loadSchema(postgres.connect(), JSON.parse(readPacked(join(from, 'dump.json')).toString()) as Dump); // as above
  const address = postgres?.url('sealpost') ?? store;
  return {
    expected,
    later,
    postgres,
    operate: (command) => createOperator(folder, address, keyFile, command),
    remove: async () => {
      await postgres?.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

/** The versions that CHANGELOG.md has as released. */
export const releasedVersions = (changelog: string): readonly string[] =>
  [...changelog.matchAll(/^## (\d+\.\d+\.\d+\S*)/gm)].map(([, version = '']) => version);
