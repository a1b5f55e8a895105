// The lock file says what is installed, and by which checksum.
import { expect, test } from 'vitest';
import { readJson } from './source-tree.ts';

type Entry = { readonly integrity?: string; readonly link?: true; readonly optional?: true; readonly os?: unknown };
const { packages } = readJson('package-lock.json') as { packages: Readonly<Record<string, Entry>> };
const installed = Object.entries(packages).filter(([path, { link }]) => path.includes('node_modules/') && !link);

/** Binaries for platforms other than those that this project was locked on: no registry at hand told their checksums. */
const unknownChecksum = /^node_modules\/(@biomejs\/cli|@msgpackr-extract\/msgpackr-extract|@rollup\/rollup)-[\w-]+$/;
const unknownMax = 37;

test('lock file: every package has a SHA-512 checksum, except optional binaries of other platforms, which are counted', () => {
  const without = installed.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'));
  for (const [path, { optional, os }] of without) {
    expect(path).toMatch(unknownChecksum);
    expect([path, optional, Array.isArray(os)]).toEqual([path, true, true]);
  }
  expect(without.length).toBeLessThanOrEqual(unknownMax);
  expect(installed.length).toBeGreaterThan(150);
});
