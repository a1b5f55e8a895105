import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { deriveCredentials } from '../../../sandbox/credentials.ts';
import { openSandboxFolder } from './folder.ts';

afterEach(() => vi.unstubAllEnvs());

test('sandbox folder: one whose sandbox was killed can be used again, also by a process with the same ID', () => {
  const place = mkdtempSync(join(tmpdir(), 'sealpost-folder-'));
  const open = () => openSandboxFolder(place, 'mine', deriveCredentials('seed'));
  const { path } = open();
  const marker = join(path, 'sandbox.json');
  expect(JSON.parse(readFileSync(marker, 'utf8')).pid).toBe(process.pid);
  open();
  const usedBy = (pid: number): void => writeFileSync(marker, JSON.stringify({ isSealpostSandbox: true, pid }));
  usedBy(2 ** 22 + 1);
  open();
  usedBy(process.ppid);
  expect(open).toThrow(`A sandbox is running in ${path} (process ${process.ppid}).`);
  rmSync(place, { recursive: true });
});

test('sandbox folder: where there is no folder for temporary files, the error says what to do', () => {
  vi.stubEnv('TMPDIR', '/nonexistent');
  expect(() => openSandboxFolder('/', undefined, deriveCredentials('seed'))).toThrow(
    'No folder can be made in the one for temporary files: No such file: /nonexistent. Correct TMPDIR, or use another folder: --dir FOLDER.',
  );
});
