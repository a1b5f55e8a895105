// `npm run formats -- VERSION [--commit COMMIT]`: writes tests/formats/VERSION with the code of a commit, by itself the newest one.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../support/running-postgres.ts';
import { createRead, readAnswers, readRecords } from './answers.ts';
import { createOperator, type Operator } from './operator.ts';
import { formatsFolder, packFolder, type Release, writePacked } from './packed-files.ts';
import { dumpSchema, recordStatements } from './postgres-dump.ts';
import { releasedCommand, resolveCommit } from './released-code.ts';
import { askMirror } from './senders.ts';
import { writeStore } from './write-store.ts';

/** A mirror wants an hour more than the store has. */
const mirrorSeconds = 3_600;

/** Fills a store, reads it through the release's own server, and writes down what the next release must find. */
const fill = async (operator: Operator, folder: string): Promise<void> => {
  const written = await writeStore(operator, Math.floor(Date.now() / 1_000));
  const { later, ...rest } = written;
  const server = await operator.serve();
  const mirror = await askMirror(server, written.feedIds, written.from - mirrorSeconds);
  const answers = await readAnswers(createRead(server.url), rest);
  const { code } = await server.stop();
  if (code !== 0) throw new Error(`The server ended with ${code}: ${server.output()}`);
  const records = await readRecords(operator);
  const key = readFileSync(operator.keyFile, 'utf8').trim();
  writePacked(join(folder, 'expected.json'), JSON.stringify({ ...rest, key, answers, records, mirror }));
  writePacked(join(folder, 'later.ndjson'), later.map((line) => `${line}\n`).join(''));
};

const makeFolder = async (command: string, temporary: string, folder: string): Promise<void> => {
  const keyFile = (engine: string) => join(temporary, `${engine}.key`);
  const store = join(temporary, 'store');
  await fill(createOperator(temporary, store, keyFile('lmdb'), command), join(folder, 'lmdb'));
  packFolder(store, join(folder, 'lmdb/store'));
  const postgres = await startPostgres();
  try {
    const database = postgres.connect();
    await recordStatements(database);
    await fill(
      createOperator(temporary, postgres.url('sealpost'), keyFile('postgres'), command),
      join(folder, 'postgres'),
    );
    writePacked(join(folder, 'postgres/dump.json'), JSON.stringify(await dumpSchema(database, 'sealpost')));
  } finally {
    await postgres.stop();
  }
};

const { positionals, values } = parseArgs({ allowPositionals: true, options: { commit: { type: 'string' } } });
const [version] = positionals;
const commit = resolveCommit(values.commit ?? 'HEAD');
if (version === undefined || commit === undefined)
  throw new Error('Usage: npm run formats -- VERSION [--commit COMMIT]');
const folder = join(formatsFolder, version);
const temporary = mkdtempSync(join(tmpdir(), 'sealpost-formats-'));
try {
  rmSync(folder, { recursive: true, force: true });
  await makeFolder(releasedCommand(commit), temporary, folder);
  const release: Release = { version, commit, writtenAt: new Date().toISOString() };
  writeFileSync(join(folder, 'release.json'), `${JSON.stringify(release, null, 2)}\n`);
  process.stdout.write(`Written: ${folder}\n`);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}
