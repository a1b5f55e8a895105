// The real program with a worker, on a machine that starts no more processes.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { requireBuild } from '../support/broken-program.ts';
import { inFull } from '../support/full-count.ts';
import { createWorld, isAlive, type Server, startServer, type World } from '../support/real-program.ts';
import { createPreload, missingCompiler, type Preload } from './preload.ts';

const missing = missingCompiler();
const oneWorker = ['--workers', '1', '--verifier-threads', '1'];
let world: World;
let preload: Preload;

beforeAll(async () => {
  if (missing !== undefined) return;
  requireBuild(); // from the sources, the command itself is a child process
  preload = createPreload();
  world = await createWorld();
});
afterAll(() => {
  preload?.remove();
  world?.remove();
});

/** The worker that answers: the one that writes of the request. */
const askWorker = async ({ url, output }: Server): Promise<number> => {
  await expect.poll(() => fetch(`${url}/time`).then((answer) => answer.status, String)).toBe(200);
  const pids = (): readonly number[] =>
    [...output().matchAll(/"pid":(\d+),"event":"request"/g)].map(([, pid]) => Number(pid)).filter(isAlive);
  await expect.poll(pids).not.toEqual([]);
  return pids().at(-1) as number; // there is one
};

// Node emits EAGAIN as an event, and throws ENOMEM.
const errors = ['EAGAIN', 'ENOMEM'] as const;

inFull('failing fork: while no worker can be started, the primary runs, and it retries until one can', async () => {
  if (missing !== undefined) return;
  const server = await startServer(world, oneWorker, preload.env);
  try {
    for (const error of errors) {
      const worker = await askWorker(server);
      preload.fail({ call: 'fork', error, times: 3, path: '' });
      process.kill(worker, 'SIGKILL');
      await server.printed(new RegExp(`A worker exited \\(spawn .*${error}\\)`));
      expect(await askWorker(server)).not.toBe(worker);
      expect(preload.hits()).toBe(3);
      expect((await fetch(`${server.opsUrl}/livez`)).status).toBe(200);
    }
  } finally {
    preload.heal();
    expect((await server.stop()).code).toBe(0);
  }
});

test('failing fork: a start without workers fails with the error', async () => {
  if (missing !== undefined) return;
  preload.fail({ call: 'fork', error: 'ENOMEM', times: 1, path: '' });
  await expect(startServer(world, oneWorker, preload.env)).rejects.toThrow(/^error: .*spawn .*ENOMEM/m);
  expect(preload.hits()).toBe(1);
});
