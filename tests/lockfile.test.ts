// The lock files say what is installed, and by which checksum.
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { readJson, root } from './support/source-tree.ts';

type Entry = { readonly integrity?: string; readonly link?: true };

test('lock file: every package has a SHA-512 checksum, also the binaries of other platforms', () => {
  const { packages } = readJson('package-lock.json') as { packages: Readonly<Record<string, Entry>> };
  const installed = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link);
  expect(installed.filter(([, { integrity }]) => !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ''))).toEqual([]);
  expect(installed.length).toBeGreaterThan(150);
});

test('lock file: npm sbom lists what the server depends on', () => {
  const args = ['sbom', '--sbom-format=cyclonedx'];
  const { components } = JSON.parse(execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: 'pipe' }));
  expect(components.map(({ name }: { readonly name: string }) => name)).toEqual(
    expect.arrayContaining(['lmdb', 'pino', 'ws']),
  );
});
