import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Files that take longest, in this order: begun early, none of them runs alone at the end while the other cores wait. */
const longest = [
  'tests/faults/kill.test.ts',
  'tests/node-releases.test.ts',
  'tests/package.test.ts',
  'tests/client/runtimes.test.ts',
  'tests/start-failures.test.ts',
  'tests/explorer/pages.test.ts',
  'tests/formats/downgrade.test.ts', // long before the others of its folder: it builds the last release for them
  'tests/docs.test.ts',
  'server/src/cli/main.test.ts',
  'tests/explorer/',
  'tests/secrets.test.ts',
  'tests/formats/',
  'tests/examples.test.ts',
  'tests/restarts.test.ts',
  'tests/client/browser.test.ts',
  'tests/workers.test.ts',
  'tests/faults/',
];

/** Vitest asks for a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification): number => {
      if (project.name === 'whole') return -1; // a process is shared with the next file only if that is of the same project
      const found = longest.findIndex((name) => moduleId.includes(`/${name}`));
      if (found !== -1) return found;
      return longest.length + (moduleId.includes('/src/') ? 1 : 0);
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Beside the code, without a browser, a database or a server process: `npm run test:unit`. */
const units = [
  '{client,explorer,protocol,simulator,testing}/src/**',
  'server/src/{access,config,connections,http,ingest,live,observe,ops,runtime}/**',
  'server/src/store',
  'server/src/store/format',
  'server/src/store/memory',
].map((folder) => `${folder}/*.test.ts`);
/** Beside the code too, but slower, or with programs and databases of their own. */
const beside = [
  '*/src/**/*.fuzz.ts',
  'server/src/{cli,cluster,sandbox,store/lmdb,store/postgres}/**/*.test.ts',
  'server/src/ingest/ingest-postgres.test.ts',
  'server/src/live/event-stream.test.ts',
  'server/src/store/copy.test.ts',
  'simulator/src/cli.test.ts',
];
/** Of whole programs, but many and short. */
const together = [
  'examples/**/*.test.ts',
  'tests/*.test.ts',
  'tests/{access,client,contracts,damage,explorer,faults,formats,http,load,soak}/*.test.ts',
];
const notOurs = ['**/node_modules/**', '**/dist/**'];
/** Modules have no state of their own, so tests share processes: with one for each file, short ones take up to twice the CPU. */
const shared = [...units, ...beside, ...together];

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source', 'node', 'import', 'module', 'default'] } },
  test: {
    maxWorkers: 3 * availableParallelism(), // many tests wait for programs: with two files for each core, cores are idle for a fifth of the time
    testTimeout: process.env.FULL === '1' ? 1_200_000 : 300_000, // for what hangs: on a machine that is slow or busy, whatever works takes its time
    expect: { poll: { timeout: 60_000 } }, // by itself one second, which is no promise of ours
    hookTimeout: 300_000,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['tests/environment.ts', 'tests/bundled-threads.ts', 'tests/demo-host.ts'],
    projects: process.argv.some((word) => /^(--project=)?units$/.test(word))
      ? [{ extends: true, test: { name: 'units', isolate: false, include: units, exclude: [...notOurs, ...beside] } }]
      : [
          { extends: true, test: { name: 'shared', isolate: false, include: shared, exclude: notOurs } },
          {
            extends: true,
            test: { name: 'whole', include: ['**/*.{test,fuzz}.ts'], exclude: [...notOurs, ...shared] },
          },
        ],
  },
});
