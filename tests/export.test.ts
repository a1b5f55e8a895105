// Exports by the real program: killed in the middle, on a full disk, from a damaged store, and with readers that leave.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEnvironment, openTable } from '../server/src/store/lmdb/environment.ts';
import { openStore } from '../server/src/store/open.ts';
import { type DuckDb, openDuckDb } from './support/exports/duckdb.ts';
import { sealpost } from './support/real-program.ts';
import { act, testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-export-'));
const store = join(folder, 'store');
const feedId = secondStream(1);
const midnight = 1_763_164_800; // 2025-11-15
const days = 4;
const perDay = 2_000;
const count = days * perDay;
let duck: DuckDb;

beforeAll(async () => {
  const { report } = await createSignedReports();
  const opened = await openStore(store, 'write');
  await opened.admin.update('stream', [feedId], () => [testStream(feedId, { name: 'BTC/USD' })], act);
  const [first] = [report(feedId, midnight, midnight)];
  // The bytes are those of one report: signing thousands takes long, and signed export does not look into them.
  const copies = Array.from({ length: count }, (_, i) => {
    const ms = (midnight + Math.floor(i / perDay) * 86_400 + (i % perDay)) * 1_000;
    return { ...first, validFromMs: ms, observationsMs: ms };
  });
  for (let i = 0; i < count; i += 4_000) await opened.reports.append(copies.slice(i, i + 4_000));
  await opened.close();
  duck = await openDuckDb();
});
afterAll(() => {
  duck.close();
  rmSync(folder, { recursive: true, force: true });
});

const start = (args: readonly string[], from = store) =>
  spawn(process.execPath, [sealpost, 'export', 'BTC/USD', '--store', from, ...args], {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
  });

const run = async (args: readonly string[], from = store) => {
  const child = start(args, from);
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  return { code, stdout, stderr };
};

const secondsIn = (out: string): readonly number[] =>
  readdirSync(out)
    .filter((name) => name.startsWith('BTC'))
    .toSorted()
    .flatMap((name) => readFileSync(join(out, name), 'utf8').trim().split('\n'))
    .map((line) => JSON.parse(line).observationsTimestamp);

const often = { interval: 1 };

const everySecond = Array.from({ length: count }, (_, i) => midnight + Math.floor(i / perDay) * 86_400 + (i % perDay));

test('export: killed with SIGKILL again and again, every file is whole, and the last run completes it', async () => {
  const out = join(folder, 'killed');
  for (const files of [1, 3]) {
    const child = start(['--out', out]);
    const exited = once(child, 'exit');
    const hasFiles = () => {
      const names = readdirSync(folder).includes('killed') ? readdirSync(out) : [];
      return names.filter((name) => name.startsWith('BTC')).length >= files;
    };
    await expect.poll(() => hasFiles() || child.exitCode !== null, often).toBe(true);
    child.kill('SIGKILL');
    await exited;
    // What has its name is whole days.
    const seconds = secondsIn(out);
    expect(seconds).toEqual(everySecond.slice(0, seconds.length));
    expect(seconds.length % perDay).toBe(0);
  }
  expect((await run(['--out', out])).code).toBe(0);
  expect(secondsIn(out)).toEqual(everySecond);
  const query = `SELECT count(*) AS n, count(DISTINCT observationsTimestamp) AS seconds FROM '${join(out, 'BTC*.ndjson')}'`;
  expect(await duck.rows(query)).toEqual([{ n: BigInt(count), seconds: BigInt(count) }]);
  expect(readdirSync(out).filter((name) => !name.startsWith('BTC'))).toEqual(['_sealpost-export.json']);
});

test('export: SIGINT ends it with 130, without leftovers, and a reader of stdout that leaves with 0', async () => {
  const out = join(folder, 'interrupted');
  const child = start(['--out', out]);
  const [stderr, exited] = [text(child.stderr), once(child, 'exit')];
  await expect.poll(() => readdirSync(folder).includes('interrupted'), often).toBe(true);
  await expect.poll(() => readdirSync(out).length > 0, often).toBe(true);
  child.kill('SIGINT');
  const [code] = await exited;
  expect([code, await stderr]).toEqual([130, 'error: Interrupted. Run the command again to resume.\n']);
  expect(readdirSync(out).filter((name) => name.includes('partial') || name.includes('lock'))).toEqual([]);
  const reader = start(['--format', 'ndjson']);
  reader.stdout.once('data', () => reader.stdout.destroy());
  const [left] = await once(reader, 'exit');
  expect(left).toBe(0);
});

test('export: a full disk ends it with 3 and the way on, leaves whole files, and it resumes when there is space', async ({
  skip,
}) => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=7m', 'tmpfs', disk], { stdio: 'ignore' });
  } catch {
    skip('mounting a small tmpfs needs root');
  }
  try {
    const out = join(disk, 'out');
    const full = await run(['--out', out]);
    expect([full.code, full.stderr]).toEqual([
      3,
      expect.stringMatching(
        /^error: No space left on the disk: .*\/out\/BTC-USD_\S+\. Free some space, then run the command again to resume\.\n$/,
      ),
    ]);
    const seconds = secondsIn(out);
    expect([seconds.length % perDay, seconds.length > 0]).toEqual([0, true]);
    expect(readdirSync(out).filter((name) => name.includes('partial') || name.includes('lock'))).toEqual([]);
    execFileSync('mount', ['-o', 'remount,size=64m', disk]);
    expect((await run(['--out', out])).code).toBe(0);
    expect(secondsIn(out)).toEqual(everySecond);
  } finally {
    execFileSync('umount', ['-l', disk]);
  }
});

test('export: a damaged report is named and skipped, the others are exported, and the exit code is 1', async () => {
  const damaged = join(folder, 'damaged');
  execFileSync('cp', ['-r', store, damaged]);
  const environment = openEnvironment(join(damaged, 'reports'), false);
  const runs = openTable(environment, 'runs', true);
  environment.root.transactionSync(() => {
    const [{ key, value }] = [...runs.getRange({ limit: 1 })] as [{ key: Buffer; value: Buffer }]; // there are some
    value[value.length - 20] = (value[value.length - 20] as number) ^ 1; // longer than that
    runs.put(key, value);
  });
  await environment.root.close();
  const { code, stdout, stderr } = await run([], damaged);
  const lines = stdout.trim().split('\n').length;
  expect([code, lines < count, lines >= count - 1]).toEqual([1, true, true]);
  expect(stderr).toMatch(
    /^error: BTC\/USD: record \S+ of reports is damaged and was skipped: .+ Run: sealpost store verify/,
  );
});
