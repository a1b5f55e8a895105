// Folders that are given as a backup: `store restore` and `store verify` of a backup in which files were cut off, replaced, removed or added, as a copy does
// that was cut short. What is flipped inside of a file is tested in tests/damage. An input is JSON: a list of [what, file, number].
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runCommand } from '../../../cli/src/sample-session.fixture.ts';
import { openStore } from '../../../server/src/store/open.ts';
import { act, registerSigners, testStream } from '../../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../support/signed-reports.ts';
import { shapeOf, type Target } from '../target.ts';

const start = 1_763_200_000;

/** Writes a store and its backup. */
const writeBackup = async (folder: string): Promise<string> => {
  const [store, backup] = [join(folder, 'store'), join(folder, 'backup')];
  const { report, signerSets } = await createSignedReports('fuzz');
  const feedIds = [1, 2].map(secondStream);
  const opened = await openStore(store, 'write');
  await opened.admin.update('stream', feedIds, () => feedIds.map((feedId) => testStream(feedId)), act);
  await registerSigners(opened, signerSets);
  for (const feedId of feedIds)
    await opened.reports.append(Array.from({ length: 300 }, (_, i) => report(feedId, start + i, start + i)));
  await opened.close();
  const { code, stderr } = await runCommand(['store', 'backup', backup, '--store', store]);
  assert.equal(code, 0, stderr);
  return backup;
};

const listStreams = async (store: string): Promise<string> =>
  (await runCommand(['stream', 'list', '--json', '--store', store])).stdout;

const listFiles = (folder: string, below = ''): readonly string[] =>
  readdirSync(join(folder, below), { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? listFiles(folder, join(below, entry.name)) : [join(below, entry.name)]))
    .sort();

type Change = (path: string, size: number) => void;

const changes: Readonly<Record<string, Change>> = {
  cut: (path, size) => truncateSync(path, size % (statSync(path).size + 1)),
  pages: (path, size) => truncateSync(path, (size * 4_096) % (statSync(path).size + 1)),
  zeros: (path, size) => writeFileSync(path, Buffer.alloc(size % 1_000_000)),
  text: (path, size) => writeFileSync(path, 'not a database\n'.repeat(size % 10_000)),
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  folder: (path) => {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  },
  add: (path, size) => writeFileSync(`${path}.${size % 3}`, 'added'),
};

/** Applies what an input says; undefined where it says nothing. */
const applyChanges = (text: string, folder: string, files: readonly string[]): string | undefined => {
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!Array.isArray(given)) return undefined;
  const done = given.slice(0, 4).flatMap((one) => {
    const [what, file, number] = Array.isArray(one) ? one : [];
    const change = typeof what === 'string' && Object.hasOwn(changes, what) ? changes[what] : undefined;
    const size = typeof number === 'number' && Number.isSafeInteger(number) ? Math.abs(number) : 0;
    const name =
      files[typeof file === 'number' && Number.isSafeInteger(file) ? Math.abs(file) % files.length : 0] ?? '';
    const path = join(folder, name);
    if (change === undefined || !existsSync(path) || statSync(path).isDirectory()) return [];
    change(path, size);
    return [`${what} ${name}`];
  });
  return done.join();
};

export const openBackup = async (): Promise<Target> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-backup-'));
  const backup = await writeBackup(folder);
  const [files, catalog] = [listFiles(backup), await listStreams(backup)];
  const [copy, target] = [join(folder, 'copy'), join(folder, 'restored')];
  const run = async (input: Buffer): Promise<string> => {
    for (const one of [copy, target]) rmSync(one, { recursive: true, force: true });
    cpSync(backup, copy, { recursive: true });
    const done = applyChanges(input.toString(), copy, files);
    if (done === undefined) return 'nothing';
    const restored = await runCommand(['store', 'restore', copy, '--store', target]);
    assert.ok([0, 1, 2, 3].includes(restored.code), `restore ended with ${restored.code}: ${restored.stderr}`);
    if (restored.code !== 0) {
      assert.match(restored.stderr, /^error: .+\n$/s, 'a refused backup is not explained');
      assert.ok(!existsSync(join(target, 'reports')), 'a refused backup left a store');
      return `${done}: ${restored.code} ${shapeOf(restored.stderr.replaceAll(folder, ''))}`;
    }
    const verified = await runCommand(['store', 'verify', '--store', target]);
    assert.ok([0, 1, 3].includes(verified.code), `verify ended with ${verified.code}: ${verified.stderr}`);
    if (verified.code === 0) assert.equal(await listStreams(target), catalog, 'a store without problems lacks streams');
    return `${done}: restored, ${verified.code}`;
  };
  const kinds = Object.keys(changes).flatMap((what) => files.map((_, i) => [[what, i, 5_000]]));
  return {
    seeds: [
      [],
      ...kinds,
      [['pages', 0, 3]],
      [['pages', 1, 9]],
      [
        ['cut', 0, 8_000],
        ['cut', 1, 8_000],
      ],
    ].map((one) => Buffer.from(JSON.stringify(one))),
    words: Object.keys(changes).map((what) => `"${what}"`),
    json: 'value',
    inputBytesMax: 400,
    run,
    close: async () => rmSync(folder, { recursive: true, force: true }),
  };
};
