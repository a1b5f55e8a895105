// A demo's past in the background: its progress, and what the next start signs after a kill.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createStreams } from '@sealpost/simulator';
import { afterAll, expect, test } from 'vitest';
import { openStore } from '../server/src/store/open.ts';
import { killGroup, type Program, startProgram } from './support/real-program.ts';
import { startDemo as startRealDemo } from './support/running-demo.ts';
import { root } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-demo-restart-'));
let demo: Program | undefined;
const kill = async (): Promise<void> => {
  if (demo !== undefined) killGroup(demo);
  await demo?.finished;
};
afterAll(async () => {
  await kill();
  rmSync(folder, { recursive: true, force: true });
});

const pastSeconds = 60;

/** Resolves when the last few seconds are stored; the rest of the past follows in the background. */
const startDemo = async (): Promise<void> => {
  const args = [join(root, 'tests/support/demo-program.ts'), folder, String(pastSeconds), '5'];
  const tsx = join(root, 'node_modules/tsx/dist/cli.mjs');
  demo = startProgram([tsx, '--conditions=source', ...args], root, {}, process.execPath, true);
  await demo.printed(/^ready$/m);
};

/** Simulated streams that have a report for every second, at any hour. */
const feedIds = createStreams('testnet')
  .filter(({ intervalSeconds, stream }) => intervalSeconds === 1 && stream.feedType === 'Crypto')
  .filter(({ stream }) => stream.status !== 'decommissioned')
  .map(({ stream }) => stream.feedId);

/** Seconds of a span, both ends included, for which a stream has no report; summed over all streams. */
const missingSeconds = async (from: number, to: number): Promise<number> => {
  const store = await openStore(folder, 'read');
  try {
    let missing = 0;
    for (const feedId of feedIds) {
      const windows = await store.reports.windows(feedId, from, to, to - from + 1);
      missing += to - from + 1 - new Set(windows.map(({ observationsMs }) => observationsMs)).size;
    }
    return missing;
  } finally {
    await store.close();
  }
};

const now = (): number => Math.floor(Date.now() / 1_000);

test('demo: killed while it signs its past, it signs what is missing at its next start', async () => {
  expect(feedIds.length).toBeGreaterThan(2);
  const startedAt = now();
  await startDemo();
  await kill();
  expect(await missingSeconds(startedAt - pastSeconds, startedAt - 1)).toBeGreaterThan(0);
  await startDemo();
  const readyAt = now();
  // Its past began before it was ready.
  await expect.poll(() => missingSeconds(readyAt - pastSeconds, readyAt - 2), { interval: 250 }).toBe(0);
});

test('demo: /status.json says how much of the past is stored until all of it is', async () => {
  const real = await startRealDemo({ pastMinutes: 6 });
  try {
    const loaded = async (): Promise<unknown> => (await (await fetch(`${real.url}/status.json`)).json()).historyLoaded;
    const first = await loaded();
    expect(first).toBeGreaterThanOrEqual(0);
    expect(first).toBeLessThan(1);
    await expect.poll(loaded, { interval: 500 }).toBeUndefined();
  } finally {
    await real.stop();
  }
});
