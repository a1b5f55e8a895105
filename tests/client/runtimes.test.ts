// The demo on every other Node release than the one that runs the tests, and @sealpost/client on each of them, on Bun and on Deno: the built
// packages, as a user installs them. On this release, tests/package.test.ts has both.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { joinDemo } from '../demo-host.ts';
import { requireBuild } from '../support/broken-program.ts';
import { isFull } from '../support/full-count.ts';
import { type Demo, startDemo } from '../support/running-demo.ts';
import { downloadMs, getBun, getDeno, getNode, nodeReleases } from '../support/runtimes.ts';
import { root } from '../support/source-tree.ts';
import type { ClientFacts } from './program.ts';

const folder = mkdtempSync(join(root, 'data-runtimes-')); // inside the project, so that packages are found
const program = join(folder, 'client-program.mjs');
// Bun takes the project's custom condition for `exports` but not for `imports`, and would mix sources with what was built.
const plainConfig = join(folder, 'tsconfig.json');
let demo: Demo;

beforeAll(async () => {
  requireBuild();
  writeFileSync(plainConfig, '{}');
  await build({
    entryPoints: [join(root, 'tests/client/program.ts')],
    outfile: program,
    bundle: true,
    format: 'esm',
    platform: 'neutral',
    external: ['@sealpost/*'],
  });
  demo = await joinDemo();
}, 360_000);
afterAll(async () => {
  await demo?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the client's program against a demo; resolves when it has ended by itself. */
const runClient = async ({ env, feedIds }: Demo, binary: string, ...args: readonly string[]): Promise<ClientFacts> => {
  const { stdout, stderr } = await promisify(execFile)(binary, [...args, program, feedIds[0] ?? ''], {
    cwd: root,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    timeout: 300_000,
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as ClientFacts; // printed by the program
};

const ones = (count: number): readonly number[] => Array.from({ length: count }, () => 1);

const expectAll = (facts: ClientFacts, { feedIds }: Demo): void => {
  expect(facts).toEqual({
    latest: feedIds[0],
    decodedPrice: expect.stringMatching(/^\d{10,}$/),
    verified: Array.from({ length: 1 + 10 + 3 + 23 + 20 }, () => true),
    altered: false,
    at: true,
    pageSizes: [4, 4, 2],
    websocket: ones(2),
    sse: ones(22),
    slow: ones(19),
    refusals: ['unauthorized 401', 'unauthorized 401', 'unauthorized 401'],
  } satisfies Record<keyof ClientFacts, unknown>);
};

// In `npm test` on the newest release.
test.for(isFull ? nodeReleases : nodeReleases.slice(-1))(
  'node %i: the demo becomes ready, and a client reads, streams and verifies from it',
  { timeout: downloadMs + 480_000 },
  async (major, { signal, skip }) => {
    const runtime = await getNode(major);
    if ('missing' in runtime) return skip(runtime.missing);
    const own = await startDemo({ node: runtime.binary, pastMinutes: 1, signal });
    try {
      expectAll(await runClient(own, runtime.binary), own);
    } finally {
      await own.stop();
    }
  },
);

test.for([
  ['bun', getBun, ['run', `--tsconfig-override=${plainConfig}`]],
  ['deno', getDeno, ['run', '--allow-net', '--allow-env', '--allow-read', '--no-lock']],
] as const)(
  '%s: a client reads, streams over WebSockets and events, and verifies',
  { timeout: downloadMs + 480_000 },
  async ([, get, args], { skip }) => {
    const runtime = await get();
    if ('missing' in runtime) return skip(runtime.missing);
    expectAll(await runClient(demo, runtime.binary, ...args), demo);
  },
);
