// The files of tests/formats/VERSION: compressed, since a store's file is mostly empty pages.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { brotliCompressSync, brotliDecompressSync, constants } from 'node:zlib';
import { root } from '../support/source-tree.ts';

const ending = '.br';

const parameters = { [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS };

export const writePacked = (path: string, content: Buffer | string): void => {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}${ending}`, brotliCompressSync(content, { params: parameters }));
};

export const readPacked = (path: string): Buffer => brotliDecompressSync(readFileSync(`${path}${ending}`));

const filesBelow = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1));

/** Copies a folder into packed files. LMDB's lock file belongs to the machine, and is left out. */
export const packFolder = (from: string, to: string): void => {
  for (const path of filesBelow(from).filter((one) => !one.endsWith('lock.mdb')))
    writePacked(join(to, path), readFileSync(join(from, path)));
};

/** Copies packed files back into a folder. */
export const unpackFolder = (from: string, to: string): void => {
  for (const packed of filesBelow(from)) {
    const path = packed.slice(0, -ending.length);
    mkdirSync(dirname(join(to, path)), { recursive: true });
    writeFileSync(join(to, path), readPacked(join(from, path)), { mode: 0o600 });
  }
};

/** What every release's folder says about itself. */
export type Release = {
  readonly version: string;
  /** The code that wrote it. */
  readonly commit: string;
  /** UTC. */
  readonly writtenAt: string;
};

export const formatsFolder = join(root, 'tests/formats');

/** The releases that left their stores, oldest first. */
export const readReleases = (): readonly (Release & { readonly folder: string })[] =>
  readdirSync(formatsFolder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => {
      const folder = join(formatsFolder, name);
      return { ...(JSON.parse(readFileSync(join(folder, 'release.json'), 'utf8')) as Release), folder };
    })
    .sort((a, b) => a.version.localeCompare(b.version, 'en', { numeric: true }));
