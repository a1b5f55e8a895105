// The tests of one file, as Stryker runs them on its mutated copy of the sources, and as their coverage is measured.
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { testsVariable } from './tested-files.ts';

/** By their names these packages would be found through node_modules, where no file is mutated. */
const packages = ['protocol', 'client', 'simulator'];

export default defineConfig({
  resolve: {
    conditions: ['source'],
    alias: packages.map((name) => ({
      find: new RegExp(`^@sealpost/${name}$`),
      replacement: join(process.cwd(), name, 'src/index.ts'),
    })),
  },
  ssr: { resolve: { conditions: ['source', 'node', 'import', 'module', 'default'] } },
  test: { include: process.env[testsVariable]?.split(',') ?? [], testTimeout: 300_000, hookTimeout: 300_000 },
});
