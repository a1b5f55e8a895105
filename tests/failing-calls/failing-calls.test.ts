// A whole node whose system calls fail: in `npm test` a sample of the cases.
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import { buildPrograms, ended, linesOf, type Programs } from '../faults/programs.ts';
import { isFull, tally, tallyControl } from '../support/full-count.ts';
import { allCases, type Case, callsPrograms, runFailingCalls } from './cases.ts';
import { createPreload, missingCompiler, type Preload, type Rule } from './preload.ts';
import { type CallsWorld, createCallsWorld } from './world.ts';

const missing = missingCompiler();
let programs: Programs;
let preload: Preload;
let world: CallsWorld;

beforeAll(async () => {
  if (missing !== undefined) return;
  preload = createPreload();
  programs = await buildPrograms(callsPrograms);
  world = await createCallsWorld();
});
afterAll(() => {
  preload?.remove();
  programs?.remove();
  world?.remove();
});

const forever = Number.POSITIVE_INFINITY;

/** One of each kind. */
const sample: readonly Case[] = [
  { call: 'fdatasync', error: 'EIO', times: 10, place: 'reports' },
  { call: 'fdatasync', error: 'ENOSPC', times: 1, place: 'administration' },
  { call: 'pwrite', error: 'EDQUOT', times: forever, place: 'reports' },
  { call: 'meta', error: 'EIO', times: 1, place: 'reports' },
  { call: 'meta', error: 'EIO', times: forever, place: 'administration' },
  { call: 'ftruncate', error: 'EIO', times: forever, place: 'reports' },
  { call: 'open', error: 'EMFILE', times: forever, place: 'reports' },
  { call: 'mmap', error: 'EIO', times: forever, place: 'reports' },
  { call: 'accept', error: 'EMFILE', times: 10, place: 'reports' },
];

const chosen = isFull ? allCases : sample;

test('failing calls: readers are answered, what is acknowledged is stored after a kill -9, and writing resumes', async ({
  skip,
}) => {
  if (missing !== undefined) skip(missing);
  const perNode = isFull ? 2 : sample.length;
  const outcome = await runFailingCalls(programs, preload, world, chosen, { perNode });
  const { acknowledged, refused, lost, unused, faulty } = outcome;
  tally({
    acknowledged,
    rejected: refused,
    lost,
    'cases whose call a node never makes': unused,
    'cases with a fault': faulty.length,
  });
  expect(outcome).toMatchObject({ faulty: [], lost: 0 });
  expect(outcome.hits).toBeGreaterThan(20);
  expect(outcome.refused).toBeGreaterThan(10);
});

test('failing calls: whoever takes a report for stored because it was sent loses some (control)', async ({ skip }) => {
  if (missing !== undefined) skip(missing);
  const cases = [{ call: 'fdatasync', error: 'EIO', times: 10, place: 'reports' }] as const;
  const { lost } = await runFailingCalls(programs, preload, world, cases, { believed: 'sent' });
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
});

/** Makes a store in a new process while a call fails; returns what it prints. */
const create = async (folder: string): Promise<string> => {
  const child = spawn(process.execPath, [programs.fileOf('node-program'), 'create', folder], {
    env: { ...process.env, ...preload.env },
    stdio: ['ignore', 'pipe', 'ignore'],
    cwd: tmpdir(),
  });
  return String((await linesOf(child).next()).value);
};

const atCreation: readonly (Omit<Rule, 'times'> & { readonly code: string })[] = [
  { call: 'pwrite', error: 'ENOSPC', path: '/reports/data.mdb', code: 'store_disk_full' },
  { call: 'pwrite', error: 'EDQUOT', path: '/admin/data.mdb', code: 'store_disk_full' },
  { call: 'fsync', error: 'EIO', path: '/store', code: 'store_unavailable' },
  { call: 'open', error: 'EMFILE', path: '/reports/data.mdb', code: 'store_unavailable' },
];

test('failing calls: the creation of a store that was cut short is named, and completed by the next start', async ({
  skip,
}) => {
  if (missing !== undefined) skip(missing);
  for (const { code, ...rule } of atCreation) {
    const root = mkdtempSync(join(tmpdir(), 'sealpost-creation-'));
    try {
      preload.fail({ ...rule, times: forever });
      expect(await create(join(root, 'store')), JSON.stringify(rule)).toBe(`failed ${code}`);
      preload.heal();
      expect(await create(join(root, 'store')), JSON.stringify(rule)).toBe('created');
      expect(readdirSync(join(root, 'store', 'reports'))).not.toContain('creating');
    } finally {
      preload.heal();
      rmSync(root, { recursive: true, force: true });
    }
  }
});

const folderOf = { reports: 'reports', administration: 'admin' } as const;

test.for([
  ['reports', 'reports'],
  ['usage', 'administration'],
  ['records', 'administration'],
] as const)(
  'failing calls: a write of %s that hangs is told, and acknowledged once it ends',
  { timeout: 300_000 },
  async ([act, part], { skip }) => {
    if (missing !== undefined) skip(missing);
    const root = mkdtempSync(join(tmpdir(), 'sealpost-hanging-'));
    const child = spawn(process.execPath, [programs.fileOf('node-program'), 'write', join(root, 'store')], {
      env: { ...process.env, ...preload.env },
      stdio: ['pipe', 'pipe', 'inherit'],
      cwd: tmpdir(),
    });
    const lines = linesOf(child);
    /** Reads what it prints until it has printed all of these; a slow machine may tell of other stops before. */
    const untilPrinted = async (...expected: readonly string[]): Promise<string> => {
      let printed = '';
      while (!expected.every((text) => printed.includes(text))) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`It ended after: ${printed}`);
        printed += `${value}\n`;
      }
      return printed;
    };
    try {
      await untilPrinted('opened');
      child.stdin?.write(`${act}\n`);
      await untilPrinted(`written ${act}`);
      preload.fail({ call: 'fdatasync', error: 'hangs', times: forever, path: `/${folderOf[part]}/data.mdb` });
      child.stdin?.write(`${act}\n`);
      const told = await untilPrinted('"kind":"writingStopped"');
      expect(told).toContain(`"part":"${part}","code":"store_unavailable"`);
      expect(told).toContain('has taken more than 0.2 s');
      expect(told).not.toContain('written');
      preload.heal();
      await untilPrinted(`written ${act}`, '"kind":"writingResumed"');
      child.stdin?.write('close\n');
      expect(await ended(child)).toEqual({ code: 0, signal: null });
    } finally {
      preload.heal();
      child.kill('SIGKILL');
      rmSync(root, { recursive: true, force: true });
    }
  },
);

test('failing calls: a store on a full disk is completed when there is space; on read-only media it opens for reading', async ({
  skip,
}) => {
  const root = mkdtempSync(join(tmpdir(), 'sealpost-media-'));
  const mount = (...args: string[]) => execFileSync('mount', [...args, root], { stdio: 'ignore' });
  if (missing !== undefined) skip(missing);
  try {
    mount('-t', 'tmpfs', '-o', 'size=12k', 'tmpfs');
  } catch {
    rmSync(root, { recursive: true });
    skip('mounting a small tmpfs needs root');
  }
  const store = join(root, 'store');
  try {
    expect(await create(store)).toBe('failed store_disk_full');
    expect(existsSync(join(store, 'admin', 'creating'))).toBe(true);
    mount('-o', 'remount,size=40m');
    expect(await create(store)).toBe('created');
    mount('-o', 'remount,ro');
    const opened = await openStore(store, 'read');
    expect(await opened.reports.position()).toBe(0);
    expect(await opened.admin.list('account')).toEqual([]);
    await expect(opened.admin.log({ atMs: 0, actor: '', action: '', detail: {} })).rejects.toMatchObject({
      code: 'store_read_only',
    });
    await opened.close();
    await expect(openStore(store, 'write')).rejects.toMatchObject({ code: 'store_read_only' });
  } finally {
    execFileSync('umount', ['-l', root]);
    rmSync(root, { recursive: true, force: true });
  }
});
