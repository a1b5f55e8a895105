import { mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../open.ts';

/** A folder with the lock of a writer in another PID namespace, refreshed so many seconds ago. */
const createLocked = (secondsAgo: number): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  mkdirSync(join(folder, 'reports'));
  const path = join(folder, 'reports/writer.lock');
  writeFileSync(path, JSON.stringify({ pid: 1, startedAt: '1', bootId, namespace: 'pid:[1]', token: 'x' }));
  const at = Date.now() / 1_000 - secondsAgo;
  utimesSync(path, at, at);
  return folder;
};

test.runIf(process.platform === 'linux')(
  'writer lock: one in another PID namespace that is refreshed is kept',
  async () => {
    await expect(openStore(createLocked(1), 'write')).rejects.toMatchObject({ code: 'store_locked' });
  },
);

test.runIf(process.platform === 'linux').each([
  ['was not refreshed for a minute', 60],
  ['is of an hour from now, because the clock was set back', -3_600],
])('writer lock: one in another PID namespace that %s is taken', async (_, secondsAgo) => {
  const store = await openStore(createLocked(secondsAgo), 'write');
  await store.close();
});
