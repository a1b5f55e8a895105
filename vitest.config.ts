import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, in this order: begun first, none of them runs alone at the end while the other cores wait. */
const longest = [
  'tests/faults/kill.test.ts',
  'tests/node-releases.test.ts',
  'tests/package.test.ts',
  'tests/client-runtimes.test.ts',
  'tests/start-failures.test.ts',
  'tests/explorer-pages.test.ts',
  'tests/docs.test.ts',
  'server/src/cli/main.test.ts',
  'tests/explorer-',
  'tests/secrets.test.ts',
  'tests/examples.test.ts',
  'tests/restarts.test.ts',
  'tests/client-browser.test.ts',
  'tests/workers.test.ts',
  'tests/faults/',
  'tests/hostile/',
];

/** Vitest asks for a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(`/${name}`));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source', 'node', 'import', 'module', 'default'] } },
  test: {
    include: ['**/*.{test,fuzz}.ts'],
    exclude: ['**/node_modules/**', '**/dist/**'],
    maxWorkers: '100%', // by itself it leaves a core free, which here is half of the machine
    testTimeout: 60_000, // a program that starts on a busy machine takes its time
    expect: { poll: { timeout: 10_000 } }, // by itself one second, which is no promise of ours
    hookTimeout: 90_000, // so do several, and removing an installed package
    sequence: { sequencer: LongestFirst },
  },
});
