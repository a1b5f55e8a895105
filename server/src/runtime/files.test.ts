import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { describeFileFailure, isOpenToOthers, isTlsKeyOpenToOthers, makeFolder } from './files.ts';

const failureOf = (path: string): unknown => {
  try {
    return readFileSync(path);
  } catch (error) {
    return error;
  }
};

test('file failure: a system error about a file becomes one plain sentence', () => {
  expect(describeFileFailure('nope', failureOf('nope'))).toBe('No such file: nope');
  expect(describeFileFailure('/etc/passwd/x', failureOf('/etc/passwd/x'))).toBe(
    'A file is where a folder is expected: /etc/passwd/x',
  );
  expect(describeFileFailure(tmpdir(), failureOf(tmpdir()))).toBe(`Not a file but a folder: ${tmpdir()}`);
  const taken = Object.assign(new Error('EEXIST: file already exists'), { code: 'EEXIST' });
  expect(describeFileFailure('backup', taken)).toBe('There is already a file: backup');
  const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
  expect(describeFileFailure('/root/key', denied)).toBe('Permission denied: /root/key');
  expect(describeFileFailure('a', new Error('odd'))).toBe('a: odd');
});

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

test.each([
  [0o600, 1_000, false],
  [0o400, 0, false],
  [0o640, 0, false],
  [0o440, 0, false],
  [0o640, 1_000, true],
  [0o660, 0, true],
  [0o644, 0, true],
  [0o604, 0, true],
  [0o601, 1_000, true],
])('private mode: a TLS key with mode %o of user %i is open to others: %s', (mode, uid, isOpen) => {
  expect(isTlsKeyOpenToOthers('/etc/key.pem', { mode: 0o100000 | mode, uid }, {})).toBe(isOpen);
});

test('private mode: files from systemd belong to its service alone; any other file is open if others have any permission', () => {
  const env = { CREDENTIALS_DIRECTORY: '/run/credentials/sealpost.service' };
  expect(isTlsKeyOpenToOthers('/run/credentials/sealpost.service/tls', { mode: 0o444, uid: 1 }, env)).toBe(false);
  expect(isOpenToOthers('/run/credentials/sealpost.service/key', 0o440, env)).toBe(false);
  expect(isOpenToOthers('/run/credentials/other.service/key', 0o440, env)).toBe(true);
});
