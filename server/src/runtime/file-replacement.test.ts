import {
  chmodSync,
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { FileBusyError, followLinks, replaceFile, writeAll } from './file-replacement.ts';
import { acquireLock } from './process-lock.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-replaced-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const createFolder = () => mkdtempSync(join(root, 'folder-'));

test('file replacement: each of many changes at once sees the one before it', async () => {
  const path = join(createFolder(), 'file');
  writeFileSync(path, '');
  const append = (line: number) =>
    replaceFile(
      path,
      async () => {
        const before = readFileSync(path, 'utf8');
        await new Promise(setImmediate);
        return `${before}${line}\n`;
      },
      600_000,
    );
  const lines = Array.from({ length: 20 }, (_, line) => line);
  await Promise.all(lines.map(append));
  const written = readFileSync(path, 'utf8').trim().split('\n').map(Number);
  expect(written.sort((a, b) => a - b)).toEqual(lines);
});

test('file replacement: a file that another process replaces is left alone until that one is done; one that was killed is not waited for', async () => {
  const path = join(createFolder(), 'file');
  writeFileSync(path, 'before');
  const unlock = await acquireLock(`${path}.lock`, () => new Error('taken'));
  let asked = 0;
  const change = () => `${++asked}`;
  await expect(replaceFile(path, change, 0)).rejects.toThrow(FileBusyError);
  expect([asked, readFileSync(path, 'utf8')]).toEqual([0, 'before']);
  const waiting = replaceFile(path, change, 600_000);
  unlock();
  await waiting;
  writeFileSync(`${path}.lock`, JSON.stringify({ pid: 2 ** 22 + 1, token: 'x' }));
  await replaceFile(path, change, 0);
  expect([readFileSync(path, 'utf8'), readdirSync(join(path, '..'))]).toEqual(['2', ['file']]);
});

test('file replacement: a change that fails leaves the file as it was, and no lock', async () => {
  const path = join(createFolder(), 'file');
  writeFileSync(path, 'before');
  const fail = () => Promise.reject(new Error('no'));
  await expect(replaceFile(path, fail)).rejects.toThrow('no');
  expect([readFileSync(path, 'utf8'), readdirSync(join(path, '..'))]).toEqual(['before', ['file']]);
});

test('file replacement: a new file is for its owner only, and one that was there keeps its mode, but not for others', async () => {
  const folder = createFolder();
  const modeOf = async (name: string): Promise<number> => {
    await replaceFile(join(folder, name), () => 'text');
    return statSync(join(folder, name)).mode & 0o777;
  };
  for (const [name, mode] of [
    ['strict', 0o400],
    ['open', 0o664],
  ] as const) {
    writeFileSync(join(folder, name), '');
    chmodSync(join(folder, name), mode);
  }
  expect([await modeOf('new'), await modeOf('strict'), await modeOf('open')]).toEqual([0o600, 0o400, 0o600]);
});

test('file replacement: links are followed and stay, through folders that are links too, also to a file that is not there yet', async () => {
  const home = createFolder();
  mkdirSync(join(home, 'vault/conf'), { recursive: true });
  symlinkSync('vault/conf', join(home, 'conf'));
  symlinkSync('../real', join(home, 'vault/conf/second'));
  symlinkSync('second', join(home, 'vault/conf/first'));
  const path = join(home, 'conf/first');
  for (const text of ['created', 'replaced']) {
    await replaceFile(path, () => text);
    expect([readFileSync(join(home, 'vault/real'), 'utf8'), readFileSync(path, 'utf8')]).toEqual([text, text]);
    for (const link of ['conf', 'conf/first', 'conf/second'])
      expect(lstatSync(join(home, link)).isSymbolicLink(), link).toBe(true);
  }
  expect(readdirSync(join(home, 'vault')).sort()).toEqual(['conf', 'real']);
  symlinkSync('round', join(home, 'round'));
  await expect(replaceFile(join(home, 'round'), () => readFileSync(join(home, 'round'), 'utf8'))).rejects.toThrow(
    'ELOOP',
  );
  expect(followLinks('a/relative/path')).toBe('a/relative/path');
});

test('write all: a system call that writes a part is followed by one for the rest, and its error is thrown', () => {
  const path = join(createFolder(), 'file');
  const file = openSync(path, 'w');
  const inParts = (to: number, bytes: Uint8Array, offset: number) =>
    writeSync(to, bytes, offset, Math.min(3, bytes.length - offset));
  const failing = (to: number, bytes: Uint8Array, offset: number) => {
    if (offset > 0) throw new Error('full');
    return inParts(to, bytes, offset);
  };
  try {
    writeAll(file, Buffer.from('twelve bytes'), inParts);
    writeAll(file, Buffer.from(', and more'));
    writeAll(file, Buffer.alloc(0));
    expect(readFileSync(path, 'utf8')).toBe('twelve bytes, and more');
    expect(() => writeAll(file, Buffer.from('twelve bytes'), failing)).toThrow('full');
  } finally {
    closeSync(file);
  }
});
