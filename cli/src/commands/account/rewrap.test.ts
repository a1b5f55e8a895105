// `sealpost secret rewrap` with a key file that is a link, and with nodes that are hard to tell apart.
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyFile, openKeyFile } from '@sealpost/server/access/key';
import { announceKeys } from '@sealpost/server/access/key-announcement';
import { openStore } from '@sealpost/server/store/open';
import { afterAll, expect, test } from 'vitest';
import { runCommand } from '../../sample-session.fixture.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-rewrap-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** A store with an account, and commands that use it. */
const openSample = async () => {
  const home = mkdtempSync(join(root, 'home-'));
  const [store, keyFile, newFile] = ['store', 'sealpost.key', 'new.key'].map((name) => join(home, name)) as [
    string,
    string,
    string,
  ]; // three names
  const run = (...args: string[]) => runCommand(args, { env: { SEALPOST_STORE: store, SEALPOST_KEY_FILE: keyFile } });
  await run('init');
  await run('account', 'create', '--name', 'acme', '--entitle', 'public');
  return { home, store, keyFile, newFile, run };
};

test('secret: rewrap adds the new key to the file that the key file is a link to, and names that file', async () => {
  const { home, keyFile, newFile, run } = await openSample();
  const real = join(home, 'vault', 'real.key');
  mkdirSync(join(home, 'vault'));
  renameSync(keyFile, real);
  symlinkSync('vault/real.key', keyFile);
  const before = readFileSync(real, 'utf8');
  const { code, stdout } = await run('secret', 'rewrap', '--new-key-file', newFile);
  expect([code, stdout.trim().split('. ').at(-1)]).toEqual([
    0,
    `Next: keep a copy of the old key for old backups, then mv ${newFile} ${real}.`,
  ]);
  expect([lstatSync(keyFile).isSymbolicLink(), readFileSync(real, 'utf8')]).toEqual([
    true,
    `${before}${readFileSync(newFile, 'utf8')}`,
  ]);
});

test('secret: rewrap waits for every node, also for one with the host name and process ID of another', async () => {
  const { home, store, keyFile, newFile, run } = await openSample();
  const elsewhere = join(home, 'elsewhere.key');
  createKeyFile(elsewhere);
  const opened = await openStore(store, 'read');
  const stops = [elsewhere, keyFile].map((path) => announceKeys(opened.keyHolders, openKeyFile(path), () => {}));
  try {
    await expect.poll(async () => (await opened.keyHolders.list()).length).toBe(2);
    const { code, stdout, stderr } = await run('secret', 'rewrap', '--new-key-file', newFile);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('Nothing was rewrapped: the new key is missing on 1 running node (');
  } finally {
    for (const stop of stops) await stop();
    await opened.close();
  }
});
