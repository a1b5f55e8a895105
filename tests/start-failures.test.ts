// A start that fails ends the process with the failure, whichever part it is, and one that takes long says what it waits for.
import { randomBytes } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand as runHere } from '../cli/src/sample-session.fixture.ts';
import { type Replacements, removeBroken, requireBuild, startBroken } from './support/broken-program.ts';
import { freePort } from './support/free-port.ts';
import { type Program, runCommand, startCommand } from './support/real-program.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-start-'));
const started: Program[] = [];
const keyFile = join(folder, 'key');
let count = 0;

beforeAll(() => {
  requireBuild();
  writeFileSync(keyFile, randomBytes(32).toString('hex'), { mode: 0o600 });
});
afterAll(() => {
  for (const { child } of started) child.kill('SIGKILL');
  removeBroken();
  rmSync(folder, { recursive: true, force: true });
});

/** A store that no other start uses. */
const newStore = (): string => {
  count += 1;
  return join(folder, String(count));
};
const demoArgs = (): readonly string[] => ['demo', '--json', '--port', '0', '--past', '1', '--dir', newStore()];
const serveArgs = (...more: readonly string[]): readonly string[] => {
  const store = newStore();
  const where = ['--store', store, '--key-file', keyFile, '--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  return ['serve', '--create', '--json', ...where, '--explorer', 'off', ...more];
};
const start = (replacements: Replacements, args: readonly string[]): Program => {
  const program = startBroken(replacements, args, folder);
  started.push(program);
  return program;
};

const throwing = "throw new Error('broken on purpose');\n";
const exiting = 'process.exit(7);\n';
const hanging = 'setInterval(() => {}, 1e6);\n';

/** A demo's thread that hands over a batch, and waits. */
const handing = (lines: readonly string[]): string =>
  `import { parentPort } from 'node:worker_threads';
   parentPort.on('message', () => {});
   parentPort.postMessage({ part: 'recent', lines: ${JSON.stringify(lines)}, last: true });`;
type Failure = {
  readonly part: string;
  readonly broken: Replacements;
  readonly args: () => readonly string[];
  readonly says: RegExp;
  readonly code?: number;
};

const failures: readonly Failure[] = [
  {
    part: 'serve: the thread that writes throws',
    broken: { 'store/lmdb/write/writer-thread.js': throwing },
    args: serveArgs,
    says: /^error: The writer thread of .* is not running: broken on purpose\. Retry shortly\.$/m,
  },
  {
    part: 'serve: a thread that verifies ends',
    broken: { 'ingest/verifier-thread.js': exiting },
    args: serveArgs,
    says: /^error: A verifier thread is not running: exit code 7\. Retry shortly\.$/m,
  },
  {
    part: 'demo: the simulated network throws',
    broken: { 'cli/commands/demo/thread.js': throwing },
    args: demoArgs,
    says: /^error: The simulated network has stopped: broken on purpose$/m,
  },
  {
    part: 'demo: the simulated network signs nothing that the store accepts',
    broken: { 'cli/commands/demo/thread.js': handing(['nonsense', 'more of it']) },
    args: demoArgs,
    says: /^error: The store rejected all 2 simulated reports \(malformed_line: /m,
    code: 1,
  },
  {
    part: 'serve: the accounts cannot be read',
    broken: {
      'store/admin-snapshot.js': "export const openAdminView = async () => { throw new Error('broken on purpose'); };",
    },
    args: serveArgs,
    says: /^error: .*broken on purpose/m,
  },
  {
    part: 'serve: live delivery does not open',
    broken: { 'live/live.js': "export const openLive = async () => { throw new Error('broken on purpose'); };" },
    args: serveArgs,
    says: /^error: .*broken on purpose/m,
  },
  {
    part: 'serve: no process can be started for a worker',
    broken: { 'cluster/messages.js': { append: "\nprocess.execPath = '/nonexistent/node';\n" } },
    args: () => serveArgs('--workers', '1'),
    says: /^error: .*\/nonexistent\/node/m,
  },
  {
    part: 'serve: a worker throws',
    broken: { 'cluster/worker.js': throwing },
    args: () => serveArgs('--workers', '1'),
    says: /broken on purpose[\s\S]*^error: .*A worker exited while it was starting/m,
  },
];

const hangs: readonly (readonly [string, Replacements, () => readonly string[], string])[] = [
  ['the writer', { 'store/lmdb/write/writer-thread.js': hanging }, serveArgs, 'the thread that writes to the store'],
  ['the verifier', { 'ingest/verifier-thread.js': hanging }, serveArgs, 'the threads that verify signatures'],
  ['the network', { 'cli/commands/demo/thread.js': hanging }, demoArgs, 'the first reports of the simulated network'],
  ['a worker', { 'cluster/worker.js': hanging }, () => serveArgs('--workers', '1'), 'worker 1'],
];

test.concurrent('start: one that takes longer than 20 s says what it waits for', async () => {
  const said = await Promise.all(
    hangs.map(async ([, broken, args]) => {
      const [line] = await start(broken, args()).printed(/^Still starting.*$/m);
      return line;
    }),
  );
  expect(said).toEqual(
    hangs.map(([, , , what]) =>
      expect.stringMatching(new RegExp(`^Still starting after \\d+ s\\. Waiting for: .*${what}\\.$`)),
    ),
  );
});

test.concurrent.each(failures)(
  'start, $part: the process ends with that failure',
  async ({ broken, args, says, code = 3 }) => {
    const finished = await start(broken, args()).finished;
    expect(finished.stderr).toMatch(says);
    expect([finished.code, finished.stdout.replace(/^\{"level".*\n/gm, '')]).toEqual([code, '']);
  },
);

test.concurrent('start, demo: a taken port, public or private, ends it with that failure', async () => {
  const taken = createServer();
  const port = await freePort(); // of those that the system gives, the one below is often another test's
  await new Promise<void>((resolve) => taken.listen(port, '127.0.0.1', resolve));
  const run = async (flag: number) => {
    const { code, stderr } = await runCommand(['demo', '--port', String(flag), '--dir', newStore()], folder);
    expect([code, stderr]).toEqual([3, expect.stringMatching(new RegExp(`^error: .*${port}`, 'm'))]);
  };
  await run(port);
  await run(port - 1);
  taken.close();
});

test.concurrent('start, demo: a profile that cannot be written, or a reader that has left, ends it', async () => {
  const args = demoArgs();
  mkdirSync(join(String(args[args.indexOf('--dir') + 1]), 'profiles.json'), { recursive: true });
  const { code, stderr } = await runCommand(args, folder);
  expect([code, stderr]).toEqual([3, expect.stringMatching(/^error: .*profiles\.json/m)]);
  const unread = startCommand(demoArgs(), folder);
  unread.child.stdout?.destroy();
  expect((await unread.finished).code).toBe(0);
});

test.concurrent('start, serve: without a store it is refused, and nothing is created; --create makes an empty one', async () => {
  const empty = newStore();
  mkdirSync(empty);
  const args = ['serve', '--json', '--store', empty, '--key-file', keyFile, '--listen', '127.0.0.1:0'];
  const serve = [...args, '--ops-listen', '127.0.0.1:0'];
  const { code, stdout, stderr } = await runCommand(serve, folder);
  expect([code, stdout, readdirSync(empty)]).toEqual([3, '', []]);
  const init = `sealpost init --store ${empty} --key-file ${keyFile}`;
  expect(stderr).toBe(
    `error: No store in ${empty}. Create one with: ${init}. If there should be one, check --store and that its volume is mounted. To serve a new, empty store, add --create.\n`,
  );
  const created = startCommand([...serve, '--create'], folder);
  started.push(created);
  await created.printed(/^\{"url"/m);
  expect(readdirSync(empty)).toContain('reports');
  created.child.kill('SIGTERM');
  expect((await created.finished).code).toBe(0);
});

test.concurrent('start, serve: one address for both listeners is a wrong setting', async () => {
  const both = ['--listen', '127.0.0.1:7499', '--ops-listen', '127.0.0.1:7499'];
  const { code, stderr } = await runHere([...serveArgs(), ...both]);
  const text = 'error: The settings listen and opsListen are both 127.0.0.1:7499. Each needs its own address.\n';
  expect([code, stderr]).toEqual([2, text]);
});
