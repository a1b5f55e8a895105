import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeFullReport } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openRunningIngest, type RunningIngest, testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { runCommand } from '../../sample-session.fixture.ts';

const { report, signerSets } = await createSignedReports();
const [stream, other, t0] = [secondStream(1), secondStream(2), 1_763_200_000];
const reports = Array.from({ length: 200 }, (_, i) => report(i % 4 === 0 ? other : stream, t0 + i, t0 + i));
const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-command-'));
const backup = join(folder, 'backup');
let running: RunningIngest;

// This keeps the store open for writing, as a server would.
beforeAll(async () => {
  running = await openRunningIngest([testStream(stream), testStream(other)], signerSets, () => (t0 + 300) * 1_000);
  await running.store.reports.append(reports);
  const { code, stdout } = await runCommand(['store', 'backup', backup, '--store', running.folder, '--json']);
  expect([code, JSON.parse(stdout)]).toMatchObject([0, { backup, streams: 2, reports: 200 }]);
});
afterAll(async () => {
  await running.close();
  rmSync(folder, { recursive: true, force: true });
});

const hexOf = (fullReport: Uint8Array): string => `0x${Buffer.from(fullReport).toString('hex')}`;

test('store: a backup of a store in use restores to an equal one that can be read and written', async () => {
  expect(readdirSync(backup).sort()).toEqual(['admin', 'reports']);
  const restored = join(folder, 'restored');
  mkdirSync(restored); // empty, as a mount point would be
  const { code, stdout } = await runCommand(['store', 'restore', backup, '--store', `lmdb:${restored}`]);
  expect([code, stdout]).toEqual([
    0,
    `200 reports of 2 streams restored to ${restored}.\nNext: check every report with sealpost store verify --store lmdb:${restored}, then start the server again.\n`,
  ]);
  const at = { nowMs: (t0 + 300) * 1_000 };
  const verified = await runCommand(['store', 'verify', '--signatures', '--store', restored], at);
  expect(verified.stdout).toBe('200 reports of 2 streams checked. No problems found.\n');
  const lines = [...reports.slice(-5), report(stream, t0 + 200, t0 + 200)].map(({ fullReport }) =>
    JSON.stringify({ fullReport: hexOf(fullReport) }),
  );
  const loaded = await runCommand(['ingest', '-', '--store', restored], { ...at, stdin: lines.join('\n') });
  expect(loaded.stdout).toMatch(/^ {2}stored +1\n {2}duplicate +5\n {2}rejected +0$/m);
});

test('store: what a backup and a restore write is for its owner alone, as the store is', async () => {
  const [saved, restored] = [join(folder, 'private'), join(folder, 'private-again')];
  await runCommand(['store', 'backup', saved, '--store', running.folder]);
  await runCommand(['store', 'restore', saved, '--store', restored]);
  for (const path of [saved, restored])
    for (const [name, mode] of [
      ['.', 0o700],
      ['admin', 0o700],
      ['admin/data.mdb', 0o600],
      ['reports/data.mdb', 0o600],
    ] as const)
      expect(statSync(join(path, name)).mode & 0o777, join(path, name)).toBe(mode);
});

test('store: neither backup nor restore overwrites anything', async () => {
  const over = await runCommand(['store', 'backup', backup, '--store', running.folder]);
  expect([over.code, over.stderr]).toEqual([1, `error: ${backup} is not empty. Use a new folder for the backup.\n`]);
  const back = await runCommand(['store', 'restore', backup, '--store', running.folder]);
  expect([back.code, back.stderr]).toEqual([
    1,
    `error: There is a store in ${running.folder}. Stop the server that uses it, move its folders reports and admin away, then run the command again.\n`,
  ]);
  const none = await runCommand(['store', 'restore', join(folder, 'none'), '--store', join(folder, 'x')]);
  expect([none.code, none.stderr]).toEqual([
    2,
    `error: No such folder: ${folder}/none. Pass the folder of a backup.\n`,
  ]);
});

test.each([
  ['the same folder', (path: string) => path],
  ['its address', (path: string) => `lmdb:${path}/`],
  ['a link to it', (path: string) => link(path)],
])('store: copy rejects %s as its target', async (_, toTarget) => {
  const ran = await runCommand(['store', 'copy', '--from', backup, '--to', toTarget(backup)]);
  expect(ran).toEqual({
    code: 2,
    stdout: '',
    stderr:
      'error: --from and --to are the same store. Set the other one; it defaults to the setting store. See: sealpost config.\n',
  });
});

const link = (path: string): string => {
  symlinkSync(path, `${path}-link`);
  return `${path}-link`;
};

test('store: restore names what an interrupted one left, and what to do about it', async () => {
  const target = join(folder, 'interrupted');
  mkdirSync(join(target, '.partial-1'), { recursive: true });
  expect(await runCommand(['store', 'restore', backup, '--store', target])).toEqual({
    code: 1,
    stdout: '',
    stderr: `error: ${target} has .partial-1 of a copy that was interrupted. If no other copy is running, delete it, then run the command again.\n`,
  });
});

test('store: folders of any name are backed up to and restored from', async () => {
  const cwd = process.cwd();
  process.chdir(folder);
  try {
    const saved = await runCommand(['store', 'backup', 'nightly:1', '--store', running.folder]);
    expect([saved.code, saved.stdout]).toEqual([0, expect.stringMatching(/^200 reports of 2 streams in nightly:1, /)]);
    const restored = await runCommand(['store', 'restore', 'nightly:1', '--store', 'a new one']);
    expect([restored.code, restored.stdout]).toEqual([
      0,
      "200 reports of 2 streams restored to a new one.\nNext: check every report with sealpost store verify --store 'a new one', then start the server again.\n",
    ]);
  } finally {
    process.chdir(cwd);
  }
});

/** A copy of the backup in which one byte of a report's signature is another, wherever it is kept. */
const damagedCopy = (name: string, fullReport: Uint8Array): string => {
  const damaged = join(folder, name);
  cpSync(backup, damaged, { recursive: true });
  const pages = join(damaged, 'reports/data.mdb');
  const bytes = readFileSync(pages);
  const needle = Buffer.from(decodeFullReport(hexOf(fullReport)).signatures[0]?.r.slice(2) ?? '', 'hex');
  for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1))
    bytes.writeUInt8(bytes.readUInt8(at + 5) ^ 1, at + 5);
  writeFileSync(pages, bytes);
  return damaged;
};

test('store: verify finds one flipped byte, reports it, and exits with 1', async () => {
  const damaged = damagedCopy('damaged', reports[150]?.fullReport ?? Buffer.alloc(0));
  const { code, stdout } = await runCommand(['store', 'verify', '--store', damaged]);
  expect(code).toBe(1);
  expect(stdout).toMatch(
    /^200 reports of 2 streams checked\. 1 problem\. To copy everything intact to a new store, run: sealpost store repair --to NEW\.\nreports \d\/\d+ \(0x.*\): .*does not match its checksum\. Affects one report\.\n$/,
  );
});

test('store: restore rejects a backup whose newest report is damaged, and leaves the target empty', async () => {
  const damaged = damagedCopy('damaged-newest', reports[199]?.fullReport ?? Buffer.alloc(0));
  const target = join(folder, 'target');
  const { code, stderr } = await runCommand(['store', 'restore', damaged, '--store', target]);
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /^error: The backup in .*damaged-newest is damaged: .* does not match its checksum\. Use another one\.\n$/,
  );
  expect(readdirSync(folder)).not.toContain('target');
});

test('store: restore keeps the key and other files in the folder', async () => {
  const target = join(folder, 'with-key');
  mkdirSync(target);
  writeFileSync(join(target, 'sealpost.key'), 'a key');
  const { code, stdout } = await runCommand(['store', 'restore', backup, '--store', target]);
  expect([code, stdout]).toEqual([0, expect.stringContaining(`restored to ${target}.`)]);
  expect(readdirSync(target).sort()).toEqual(['admin', 'reports', 'sealpost.key']);
  expect(readFileSync(join(target, 'sealpost.key'), 'utf8')).toBe('a key');
});
