// Reads the project's own sources for the tests that judge them. No compiler API: TypeScript 7 has none.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

export type SourceFile = { readonly path: string; readonly text: string; readonly imports: readonly string[] };

/** Files that git tracks or would track, and that are there, relative to the root, by the end of their name. */
export const listFiles = (...endings: readonly string[]): readonly string[] =>
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '--deduplicate'], {
    cwd: root,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => endings.some((ending) => path.endsWith(ending)) && existsSync(join(root, path)));

export const readText = (path: string): string => readFileSync(join(root, path), 'utf8');

export const readJson = (path: string): Record<string, unknown> => JSON.parse(readText(path));

const importPattern =
  /(?:^|\n)\s*(?:import|export)\b[^'"`;]*?\bfrom\s*['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s*['"]([^'"]+)['"]/g;

/** The source of a module that one of our packages offers by its path: `@sealpost/server/store/store` is server/src/store/store.ts. */
const moduleOfPackage = (name: string): string | undefined => {
  const [, folder, path] = /^@sealpost\/(server|sandbox|conformance)\/([^.]+)$/.exec(name) ?? [];
  return folder && `${folder}/src/${path}.ts`;
};

/** Every TypeScript source with the modules it imports: those of a package's own as paths from the root, others as written. */
export const readSources = (): readonly SourceFile[] =>
  listFiles('.ts', '.tsx').map((path) => {
    const text = readText(path);
    const imports = [...text.matchAll(importPattern)].map((match) => match[1] ?? match[2] ?? match[3] ?? '');
    return {
      path,
      text,
      imports: imports.map((name) =>
        name.startsWith('.') ? normalize(join(dirname(path), name)) : (moduleOfPackage(name) ?? name),
      ),
    };
  });

export const isTest = (path: string): boolean =>
  /\.(test|fuzz|bench|contract|fixture)\.tsx?$/.test(path) || path.startsWith('tests/');

/** The folder of the workspace package that a path or an import belongs to; undefined for the root's own files. */
export const workspaces = (): ReadonlyMap<string, string> => {
  const folders = readJson('package.json').workspaces as readonly string[];
  return new Map(folders.map((folder) => [folder, String(readJson(`${folder}/package.json`).name)]));
};
