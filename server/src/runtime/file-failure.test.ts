import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { expect, test } from 'vitest';
import { describeFileFailure } from './file-failure.ts';

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
