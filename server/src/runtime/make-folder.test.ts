import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { makeFolder } from './make-folder.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-make-folder-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('make folder: folders above are made with the same mode, and the first one that was made is returned', () => {
  const [a, b] = [join(folder, 'a'), join(folder, 'a', 'b')];
  expect(makeFolder(b, 0o700)).toBe(a);
  for (const path of [a, b]) expect(statSync(path).mode & 0o777).toBe(0o700);
  expect(makeFolder(join(b, 'c'))).toBe(join(b, 'c'));
  expect(makeFolder(b)).toBeUndefined();
  expect(makeFolder('.')).toBeUndefined();
});

test('make folder: a link to a folder is one', () => {
  mkdirSync(join(folder, 'target'));
  symlinkSync(join(folder, 'target'), join(folder, 'link'));
  expect(makeFolder(join(folder, 'link'))).toBeUndefined();
  makeFolder(join(folder, 'link', 'x'));
  expect(existsSync(join(folder, 'target', 'x'))).toBe(true);
});

test('make folder: the error is that of the folder that cannot be made, not of those in it', () => {
  const [lost, file] = [join(folder, 'lost'), join(folder, 'file')];
  symlinkSync(join(folder, 'not-mounted'), lost);
  writeFileSync(file, '');
  expect(() => makeFolder(join(lost, 'x', 'y'))).toThrow(expect.objectContaining({ code: 'EEXIST', path: lost }));
  expect(() => makeFolder(join(file, 'x'))).toThrow(expect.objectContaining({ code: 'ENOTDIR' }));
  expect(() => makeFolder(file)).toThrow(expect.objectContaining({ code: 'EEXIST', path: file }));
});
