// The files of an embedded store are deleted or replaced while a node writes to it, as by a careless restore: nothing is acknowledged from then on.
import { cpSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type FeedId, toReportJson } from '@sealpost/protocol';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { createWorld, fetchSigned, type Server, startServer, type World } from '../support/real-program.ts';
import { createSignedReports } from '../support/signed-reports.ts';

const { report } = await createSignedReports();
const token = 'token-of-the-tests';
let world: World;
/** A copy of the store as it is before each replacement. */
let backup: string;
const servers: Server[] = [];

beforeAll(async () => {
  world = await createWorld();
  backup = join(world.folder, 'backup');
  cpSync(world.store, backup, { recursive: true });
});
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.child.kill('SIGKILL');
    await server.finished;
  }
});
afterAll(() => world.remove());

const serve = async (): Promise<Server> => {
  const server = await startServer(world, ['--workers', '0'], { SEALPOST_INGEST_TOKEN: token });
  servers.push(server);
  return server;
};

const putBack = (): void => {
  for (const folder of [world.store, `${world.store}-away`]) rmSync(folder, { recursive: true, force: true });
  cpSync(backup, world.store, { recursive: true });
};

const replaceFile = (path: string): void => {
  cpSync(join(backup, path), join(world.store, `${path}.new`));
  renameSync(join(world.store, `${path}.new`), join(world.store, path));
};

const moveAway = (): void => renameSync(world.store, `${world.store}-away`);
const restoreBackup = (): void => {
  moveAway();
  cpSync(backup, world.store, { recursive: true });
};

const ways: Readonly<Record<string, () => void>> = {
  'deleting the folder': () => rmSync(world.store, { recursive: true }),
  'moving it away, and making an empty one': () => {
    moveAway();
    mkdirSync(join(world.store, 'reports'), { recursive: true });
  },
  'replacing the file of reports': () => replaceFile('reports/data.mdb'),
  'deleting the file of reports': () => rmSync(join(world.store, 'reports/data.mdb')),
  'deleting the lock of reports': () => rmSync(join(world.store, 'reports/lock.mdb')),
  // The test of a folder that is moved back does these two.
  'moving the folder away': moveAway,
  'moving it away, and restoring a backup': restoreBackup,
};

let second = Math.floor(Date.now() / 1_000) - 100_000;
const lineOf = (feedId: FeedId, { fullReport, ...window }: StoredReport): string =>
  `${JSON.stringify(toReportJson(feedId, window, `0x${Buffer.from(fullReport).toString('hex')}`))}\n`;

/** Sends the next report; returns it with what became of it: `stored`, or the code of the error. */
const send = async ({ opsUrl }: Server): Promise<readonly [StoredReport, string]> => {
  second += 1;
  const next = report(world.feedId, second, second);
  const headers = { Authorization: `Bearer ${token}` };
  const body = lineOf(world.feedId, next);
  const answer = await fetch(`${opsUrl}/ingest`, { method: 'POST', headers, body });
  const { result, code } = JSON.parse((await answer.text()).trim()) as { result?: string; code?: string };
  return [next, result ?? String(code)];
};

const readyz = async ({ opsUrl }: Server): Promise<{ ready: boolean; reasons: string[]; degraded?: string[] }> =>
  (await (await fetch(`${opsUrl}/readyz`)).json()) as never; // as it answers

const countStored = async (reports: readonly StoredReport[]): Promise<number> => {
  const store = await openStore(world.store, 'read');
  try {
    let count = 0;
    for (const one of reports) {
      const [found] = await store.reports.at([world.feedId], one.observationsMs / 1_000);
      if (found !== undefined && Buffer.compare(found.fullReport, one.fullReport) === 0) count += 1;
    }
    return count;
  } finally {
    await store.close();
  }
};

/** A batch that waits behind one that fails is not tried. */
const rejections = ['store_replaced', 'store_unavailable'];

/** Replaces the store under ingest; returns the codes of what was sent from then on, and the reports. */
const replaceUnder = async (server: Server, replace: () => void) => {
  let isReplaced = false;
  const outcomes: string[] = [];
  const sent: StoredReport[] = [];
  const sending = async (): Promise<void> => {
    for (;;) {
      const isAfter = isReplaced;
      const [one, outcome] = await send(server);
      if (!isAfter) {
        expect(['stored', ...rejections]).toContain(outcome);
        continue;
      }
      outcomes.push(outcome);
      sent.push(one);
      if (outcomes.length >= 40) return;
    }
  };
  const senders = [sending(), sending()];
  for (let i = 0; i < 5; i += 1) expect((await send(server))[1]).toBe('stored');
  await nextTurn();
  replace();
  isReplaced = true;
  await Promise.all(senders);
  return { outcomes, sent };
};

/** What a node says whose store was replaced, and that it acknowledged nothing. */
const expectStopped = async (server: Server, outcomes: readonly string[], name: string): Promise<void> => {
  tally({ 'acknowledged afterwards': outcomes.filter((outcome) => outcome === 'stored').length });
  for (const outcome of outcomes) expect(rejections, name).toContain(outcome);
  expect(outcomes, name).toContain('store_replaced');
  const { ready, reasons } = await readyz(server);
  expect(ready, name).toBe(false);
  expect(reasons.join(), name).toMatch(/^writing: writing to reports has stopped \(store_replaced\): .*restart it/);
  await server.printed(/"event":"writingStopped","part":"reports","code":"store_replaced"/);
  expect(await (await fetch(`${server.opsUrl}/metrics`)).text()).toContain(
    'sealpost_store_writing_stopped{part="reports"} 1',
  );
};

const count = countOf(5, 70);

test('replaced store: once its files were deleted or replaced, a node acknowledges nothing, and says why', {
  timeout: 3_600_000,
}, async () => {
  const chosen = Object.entries(ways);
  for (let done = 0; done < count; done += 1) {
    const [name, replace] = chosen[done % chosen.length] as (typeof chosen)[number]; // below its length
    putBack();
    const server = await serve();
    const { outcomes } = await replaceUnder(server, replace);
    await expectStopped(server, outcomes, name);
    server.child.kill('SIGKILL');
    await server.finished;
  }
});

test('replaced store: a folder that is moved back is written to again; a restarted node writes to the one that is there', async () => {
  putBack();
  const server = await serve();
  await expectStopped(server, (await replaceUnder(server, moveAway)).outcomes, 'moving the folder away');
  renameSync(`${world.store}-away`, world.store);
  await server.printed(/"event":"writingResumed","part":"reports"/);
  const [one, outcome] = await send(server);
  expect(outcome).toBe('stored');
  expect(await countStored([one])).toBe(1);
  const { outcomes, sent } = await replaceUnder(server, restoreBackup);
  await expectStopped(server, outcomes, 'moving it away, and restoring a backup');
  server.child.kill('SIGKILL');
  await server.finished;
  // The control: whoever takes every report for stored because it was sent loses some.
  const lost = sent.length - (await countStored(sent));
  tallyControl({ lost });
  expect(lost).toBeGreaterThan(0);
  const [other, again] = await send(await serve());
  expect(again).toBe('stored');
  expect(await countStored([other])).toBe(1);
});

test('replaced store: a node whose administration was replaced changes neither file, and says so', async () => {
  putBack();
  const server = await serve();
  expect((await send(server))[1]).toBe('stored');
  replaceFile('admin/data.mdb');
  await fetchSigned(server.url, `/api/v1/reports/latest?feedID=${world.feedId}`, world);
  await expect
    .poll(async () => (await readyz(server)).degraded?.join(), { timeout: 60_000 })
    .toMatch(/writing to administration has stopped \(store_replaced\)/);
  await expect(
    (async () => {
      const store = await openStore(world.store, 'read');
      const used = await store.usage.list(world.userId, '2000-01-01');
      await store.close();
      return used;
    })(),
  ).resolves.toEqual([]);
  expect((await send(server))[1]).toBe('stored');
});
