import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { createFileKeyHolders } from './key-holders.ts';

const root = mkdtempSync(join(tmpdir(), 'sealpost-holders-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
const createFolder = () => mkdtempSync(join(root, 'store-'));

test('key holders: the file of a node of an earlier release counts as long as that node writes it', async () => {
  const folder = createFolder();
  const { announce, list } = createFileKeyHolders(folder);
  const earlier = { node: 'host, process 1', keyIds: ['old'] };
  await announce({ node: 'host, process 1, ID a', keyIds: ['old', 'new'] });
  writeFileSync(join(folder, 'node-keys.json'), `${JSON.stringify(earlier)}\n`, { mode: 0o600 });
  expect(await list()).toEqual([earlier, { node: 'host, process 1, ID a', keyIds: ['old', 'new'] }]);
  const [past, future] = [Date.now() / 1_000 - 10, Date.now() / 1_000 + 60];
  for (const seconds of [past, future]) {
    utimesSync(join(folder, 'node-keys.json'), seconds, seconds);
    expect((await list()).map(({ node }) => node)).not.toContain('host, process 1');
  }
});

test('key holders: a node that starts removes the files of those that were killed, and no other file', async () => {
  const folder = createFolder();
  const [killed, cut, earlier] = [
    'node-keys-0123456789abcdef.json',
    'node-keys-0123456789abcdef.json.partial',
    'node-keys.json',
  ];
  const others = ['node-keys.json-of-mine', 'sealpost.key'];
  for (const name of [killed, cut, earlier, ...others]) {
    writeFileSync(join(folder, name), '{"node":"gone","keyIds":[]}');
    utimesSync(join(folder, name), 1_700_000_000, 1_700_000_000);
  }
  writeFileSync(join(folder, 'node-keys-fedcba9876543210.json'), '{"node":"running","keyIds":[]}');
  const { announce, withdraw } = createFileKeyHolders(folder);
  await announce({ node: 'here', keyIds: [] });
  await withdraw('here');
  expect(readdirSync(folder).sort()).toEqual(['node-keys-fedcba9876543210.json', ...others]);
});

test('key holders: a folder that is not there has no nodes; a file of a running node that cannot be read is an error', async () => {
  expect(await createFileKeyHolders(join(root, 'missing')).list()).toEqual([]);
  const folder = createFolder();
  const { announce, list } = createFileKeyHolders(folder);
  await announce({ node: 'here', keyIds: [] });
  const [name = ''] = readdirSync(folder);
  rmSync(join(folder, name));
  mkdirSync(join(folder, name));
  await expect(list()).rejects.toMatchObject({ code: 'EISDIR' });
});
