import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { deriveCredentials } from '@sealpost/sandbox/accounts';
import { afterEach, expect, test, vi } from 'vitest';
import { openSandboxFolder } from './folder.ts';

afterEach(() => vi.unstubAllEnvs());

test('sandbox folder: one whose sandbox was killed can be used again, also by a process with the same ID', async () => {
  const place = mkdtempSync(join(tmpdir(), 'sealpost-folder-'));
  const open = () => openSandboxFolder(place, 'mine', deriveCredentials('seed'));
  const { path } = await open();
  await expect(open()).rejects.toThrow(`A sandbox is running in ${path} (process ${process.pid}).`);
  const lock = join(path, 'sandbox.lock');
  const holder = JSON.parse(readFileSync(lock, 'utf8'));
  writeFileSync(lock, JSON.stringify({ ...holder, startedAt: '1' })); // of a process before this one
  (await open()).remove();
  (await open()).remove();
  rmSync(place, { recursive: true });
});

test('sandbox folder: where there is no folder for temporary files, the error says what to do', async () => {
  vi.stubEnv('TMPDIR', '/nonexistent');
  await expect(openSandboxFolder('/', undefined, deriveCredentials('seed'))).rejects.toThrow(
    'No folder can be made in the one for temporary files: No such file: /nonexistent. Correct TMPDIR, or use another folder: --dir FOLDER.',
  );
});
