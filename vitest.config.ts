import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest, in this order: begun early, nothing runs alone at the end while the other core waits. */
const longest = [
  '/tests/explorer/',
  ...['/tests/examples', '/tests/client/runtimes', '/tests/docs', '/tests/client/published-sdk-reads'], // on the same demo
  ...['/tests/package', '/tests/sandbox', '/tests/'],
];

/** Vitest asks for a class. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const found = longest.findIndex((name) => moduleId.includes(name));
      return found === -1 ? longest.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b));
  }
}

/** Without a browser, a database or a server process: `npm run test:quick`. */
const quick = [
  '{client,explorer,protocol,simulator}/src/**/*.test.ts',
  'server/src/{access,config,connections,http,ingest,live,observe,ops,runtime,store/format,store/memory}/**/*.test.ts',
];
/** Of these with programs, databases or whole servers of their own. */
const notQuick = [
  'server/src/ingest/ingest-postgres.test.ts',
  'server/src/live/event-stream.test.ts',
  'server/src/observe/log.test.ts',
  'server/src/runtime/{one-core,process-lock}.test.ts',
  'simulator/src/history.test.ts',
];
const whole = [
  '**/*.fuzz.ts',
  '{cli,conformance,sandbox}/src/**/*.test.ts',
  'server/src/{cluster,store/lmdb,store/postgres}/**/*.test.ts',
  'server/src/{,store/}*.test.ts',
  '{examples,packaging}/**/*.test.ts',
  'tests/*.test.ts',
  'tests/{access,client,contracts,damage,explorer,faults,formats,http,load,soak}/**/*.test.ts',
];
/** They replace clocks and timers, or bring processes down. */
const apart = ['tests/{failing-calls,fuzz,hostile,schedules}/**/*.test.ts'];
const notOurs = ['**/node_modules/**', '**/dist/**'];

export default defineConfig({
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source', 'node', 'import', 'module', 'default'] } },
  test: {
    maxWorkers: 2 * availableParallelism(), // many tests wait for programs; with three files for each core, browsers and probes are late now and then
    testTimeout: process.env.FULL === '1' ? 1_200_000 : 300_000, // for what hangs: on a machine that is slow or busy, whatever works takes its time
    expect: { poll: { timeout: 60_000 } }, // by itself one second, which is no promise of ours
    hookTimeout: 300_000,
    sequence: { sequencer: LongestFirst },
    globalSetup: ['tests/environment.ts', 'tests/bundled-threads.ts', 'tests/demo-host.ts'],
    // Modules have no state of their own, so tests share processes: with one for each file, short ones take up to twice the CPU.
    projects: [
      { extends: true, test: { name: 'quick', isolate: false, include: quick, exclude: [...notOurs, ...notQuick] } },
      {
        extends: true,
        test: {
          name: 'whole',
          isolate: false,
          include: [...whole, ...notQuick],
          exclude: notOurs,
        },
      },
      { extends: true, test: { name: 'apart', include: apart, exclude: notOurs } },
    ],
  },
});
