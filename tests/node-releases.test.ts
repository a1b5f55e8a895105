// The store and the read path on every Node release of `engines`, beside the one that runs the tests: the same test files, bundled once. Where we use internals of node:http, they compare our bytes with node's own.
import { execFile } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { stripVTControlCharacters as plain, promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleModules, threadModules } from './bundled-threads.ts';
import { allowedCores } from './load/cores.ts';
import { isFull } from './support/full-count.ts';
import { downloadMs, getNode, nodeReleases } from './support/runtimes.ts';
import { readJson, readText, root, workspaces } from './support/source-tree.ts';

/** In `npm test` on the newest release alone. */
const releases = isFull ? nodeReleases : nodeReleases.slice(-1);
const storeSuite = 'server/src/store/lmdb/engine.test.ts';
/** What runs on each release: where Node's internals are used, or its own formats. */
const closest = [
  'server/src/store/lmdb/environment.test.ts',
  'server/src/store/format/report-run.test.ts',
  'server/src/http/server.test.ts',
  'server/src/connections/node-internals.test.ts',
];
/** Only with FULL=1. */
const widest = [storeSuite, 'tests/live.test.ts', 'tests/spec.test.ts', 'tests/client/reads.test.ts'];
const oneCoreModule = 'server/src/runtime/one-core.ts';
// As deep in the project as tests/, so that the files find its root, and packages.
const folder = mkdtempSync(join(root, 'data-releases-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(async () => {
  await bundleModules([...closest, ...widest, ...threadModules, oneCoreModule], folder);
  const times = { testTimeout: 300_000, hookTimeout: 300_000, expect: { poll: { timeout: 60_000 } } };
  const config = { test: { include: ['*.test.mjs'], maxWorkers: 1, isolate: false, ...times } };
  writeFileSync(join(folder, 'vitest.config.mjs'), `export default ${JSON.stringify(config)};`);
});

type Report = {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
};

const readReport = (path: string, output: string): Report => {
  if (!existsSync(path)) throw new Error(`vitest did not run: ${output.slice(-4_000)}`);
  return JSON.parse(readFileSync(path, 'utf8')) as Report; // vitest's own form
};

/** Runs suites on a release; what failed, in words. */
const runSuites = async (binary: string, suites: readonly string[], signal: AbortSignal) => {
  const result = join(folder, `result-${process.hrtime.bigint()}.json`);
  const files = suites.map((suite) => join(folder, `${basename(suite, '.ts')}.mjs`));
  const args = ['run', ...files, '--root', folder, '--reporter=json', `--outputFile=${result}`];
  const ended = await promisify(execFile)(binary, [join(root, 'node_modules/vitest/vitest.mjs'), ...args], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS: '' },
    maxBuffer: 64 * 2 ** 20,
    signal,
  }).catch((error: unknown) => error as { readonly stdout: string; readonly stderr: string }); // it exits with 1 when a test fails
  const { testResults } = readReport(result, plain(`${ended.stdout}\n${ended.stderr}`));
  const failed = testResults.flatMap(({ name, status, message, assertionResults }) => [
    ...(status === 'passed' || assertionResults.length > 0 ? [] : [`${name}: ${message}`]),
    ...assertionResults
      .filter((one) => one.status === 'failed')
      .map(({ fullName, failureMessages }) => `${fullName}: ${plain(failureMessages[0] ?? '').slice(0, 400)}`),
  ]);
  return { files: testResults.length, failed };
};

test('engines: every package lists the releases that are tested, CI runs on each, and the image uses one of them', () => {
  const listed = ['.', ...workspaces().keys()].map((folder) => Object(readJson(`${folder}/package.json`).engines).node);
  expect(new Set(listed)).toEqual(new Set(['^20.20.2 || ^22.13.0 || ^24.0.0 || >=26.0.0']));
  const majors = [...String(listed[0]).matchAll(/(\d+)\.\d+\.\d+/g)].map(([, major]) => Number(major));
  const own = Number.parseInt(process.versions.node, 10);
  expect([...new Set([20, own, ...nodeReleases])].sort()).toEqual(majors);
  expect(readText('.github/workflows/test.yml')).toContain(`node: [${majors.join(', ')}]`);
  expect(readText('deploy/Dockerfile').match(/^ARG NODE_IMAGE=node:(\d+)/m)?.[1]).toBe('24');
  expect(readText('deploy/Dockerfile').match(/^FROM (?!\$\{NODE_IMAGE\}( |$)).*/gm)).toBeNull();
});

test.for(releases)(
  'node %i: the store and the read path work as on the node that runs the tests',
  // Once more, because the suites have time-outs of their own and run beside all others: a release that differs fails twice.
  { timeout: downloadMs + 900_000, retry: 1 },
  async (major, { signal, skip }) => {
    const runtime = await getNode(major);
    if ('missing' in runtime) return skip(runtime.missing);
    const suites = [...closest, ...(isFull ? widest : [])];
    const { files, failed } = await runSuites(runtime.binary, suites, signal);
    expect(failed, `on node ${runtime.version}`).toEqual([]);
    expect(files).toBe(suites.length);
  },
);

/** Fills the heap with objects of its own and of Node's until all of it was collected eight times, then says so. A flag that V8 does not expect aborts it. */
const collectOften = `
  import { PerformanceObserver, constants } from 'node:perf_hooks';
  let majors = 0;
  new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries()) if (detail.kind === constants.NODE_PERFORMANCE_GC_MAJOR) majors += 1;
  }).observe({ entryTypes: ['gc'] });
  const kept = [];
  for (let i = 0; majors < 8; i += 1_000) {
    for (let k = i; k < i + 1_000; k++) kept[k % 20_000] = [new Array(20).fill(k), new AbortController(), Buffer.alloc(64)];
    await new Promise((resolve) => setImmediate(resolve));
  }
  console.log('collected');
  process.exit(0);
`;

const [firstCore] = allowedCores();

test.runIf(firstCore !== undefined).for(releases)(
  'node %i: on one core, where no other thread marks garbage, it is collected over and over',
  { timeout: downloadMs + 120_000 },
  async (major, { signal, skip }) => {
    const runtime = await getNode(major);
    if ('missing' in runtime) return skip(runtime.missing);
    const args = ['--import', join(folder, 'one-core.mjs'), '--input-type=module', '--eval', collectOften];
    const line = ['-c', String(firstCore), runtime.binary, ...args];
    const { stdout } = await promisify(execFile)('taskset', line, { signal });
    expect(stdout).toBe('collected\n');
  },
);
