// The code of the last release on a store that this release wrote: it reads and continues it, or refuses it and leaves it as it is.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type FeedId, toReportJson } from '@sealpost/protocol';
import { open } from 'lmdb';
import { expect, test } from 'vitest';
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { isFull } from '../support/full-count.ts';
import { openEvents } from '../support/live-clients.ts';
import { createWorld, type Server, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { startPostgres } from '../support/running-postgres.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import { type Answers, createRead, readAnswers } from './answers.ts';
import { createOperator, type Operator } from './operator.ts';
import { readReleases } from './packed-files.ts';
import { releasedCommand, whyNotBuilt } from './released-code.ts';
import { sendLines } from './senders.ts';
import { enginesOf } from './stored-release.ts';

const last = readReleases().at(-1);
if (last === undefined) throw new Error('No release left its stores in tests/formats.');
const skipped = whyNotBuilt(last.commit);
const { report } = await createSignedReports();

const lineOf = (one: StoredReport): string =>
  JSON.stringify(toReportJson(one.feedId, one, `0x${Buffer.from(one.fullReport).toString('hex')}`));

const feedIds: readonly FeedId[] = [1, 2, 3].map(secondStream);
/** Enough for blocks that are full, and for pages of the store that are. */
const seconds = 250;

/** Writes reports by this release: two streams without gaps, one with a gap, and late reports in between. */
const writeReports = async ({ store }: World, from: number): Promise<void> => {
  const opened = await openStore(store, 'write');
  try {
    await opened.admin.update('stream', feedIds, () => feedIds.map((feedId) => testStream(feedId)), act);
    const isLate = (second: number) => second % 50 === 7;
    const of = (feedId: FeedId, isChosen: (second: number) => boolean) =>
      Array.from({ length: seconds }, (_, i) => i)
        .filter((i) => isChosen(i) && !(feedId === feedIds[2] && i > 90 && i < 120))
        .map((i) => report(feedId, from + i, from + i, BigInt(i + 1) * 10n ** 15n));
    for (const feedId of feedIds) await opened.reports.append(of(feedId, (second) => !isLate(second)));
    for (const feedId of feedIds) await opened.reports.append(of(feedId, isLate));
  } finally {
    await opened.close();
  }
};

/** What a server answers. */
const answersOf = ({ url }: Server, { userId, secret }: World, from: number): Promise<Answers> => {
  const reader = { userId, secret };
  const readers = { all: reader, few: reader, disabled: reader, second: reader, former: reader };
  return readAnswers(createRead(url), { feedIds, from, to: from + seconds + 10, readers });
};

/** Reports after an event; gives the ID of the last one. */
const readEvents = async ({ url }: Server, world: World, count: number, lastEventId?: string): Promise<string> => {
  const target = `/api/v1/reports/stream?feedIDs=${feedIds.join(',')}`;
  const events = await openEvents(url, target, world, Date.now(), lastEventId);
  await expect.poll(() => events.reports().length).toBe(count);
  events.close();
  return events.events.at(-1)?.id ?? '';
};

/** What engines write in the same way. */
const expectSameRecords = async (now: Operator, then: Operator, { userId }: World): Promise<void> => {
  const usage = await now.runJson('account', 'usage', userId);
  expect(JSON.stringify(usage)).toContain('"route":"reportCandlesMany","requests":1');
  expect(await then.runJson('account', 'usage', userId)).toEqual(usage);
  expect(await then.runJson('quarantine', 'list')).toEqual(await now.runJson('quarantine', 'list'));
  expect(await then.runJson('audit', 'verify')).toEqual(await now.runJson('audit', 'verify'));
};

const inTurn = async (operator: Operator, act: (server: Server) => Promise<void>): Promise<void> => {
  const server = await operator.serve();
  try {
    await act(server);
  } finally {
    expect(await server.stop()).toMatchObject({ code: 0 });
  }
};

// Only with FULL=1: tests/formats/rolling.test.ts replaces nodes by the last release, and rolls one back.
test.skipIf(skipped !== undefined || !isFull).each(enginesOf(last))(
  `downgrade: ${last.version} answers from a store of this release as this release does, adds to it, and event IDs count for both (%s)`,
  async (engine) => {
    const postgres = engine === 'postgres' ? await startPostgres() : undefined;
    const world = await createWorld(postgres?.url('downgrade'));
    try {
      const from = Math.floor(Date.now() / 1_000) - seconds - 60;
      await writeReports(world, from);
      const now = createOperator(world.folder, world.store, world.keyFile);
      const then = createOperator(world.folder, world.store, world.keyFile, releasedCommand(last.commit));
      const linesAt = (second: number) => feedIds.map((feedId) => lineOf(report(feedId, from + second, from + second)));
      // A limit of a route that the last release does not have.
      await now.run(['account', 'limit', world.userId, '--limit', 'reportCandlesMany=5']);
      const answers: Answers[] = [];
      let eventId = '';
      await inTurn(now, async (server) => {
        const events = readEvents(server, world, feedIds.length);
        await expect.poll(() => metric(server, 'sealpost_live_connections')).toBe(1);
        expect(await sendLines(server, linesAt(seconds))).toEqual({ stored: feedIds.length });
        eventId = await events;
        expect(await sendLines(server, linesAt(seconds + 1))).toEqual({ stored: feedIds.length });
        answers.push(await answersOf(server, world, from));
        // A route that the last release does not have: it is counted in the usage.
        const several = `feedIDs=${feedIds.join(',')}&from=${from}&to=${from + 60}&resolution=60`;
        const target = `/api/v1/reports/candles/bulk?${several}`;
        expect(await createRead(server.url)(target, world)).toMatchObject({ status: 200 });
        expect(await sendLines(server, ['{}'])).toEqual({ refused: 1 });
      });
      if (engine === 'lmdb') await expectSameRecords(now, then, world);
      await inTurn(then, async (server) => {
        expect(answers[0]).toMatchObject(await answersOf(server, world, from));
        eventId = await readEvents(server, world, feedIds.length, eventId);
        for (let i = 2; i < 8; i++)
          expect(await sendLines(server, linesAt(seconds + i))).toEqual({ stored: feedIds.length });
        expect(await sendLines(server, linesAt(seconds + 1))).toEqual({ duplicate: feedIds.length });
        answers.push(await answersOf(server, world, from));
      });
      await then.run(['store', 'verify']); // it ends with 1 where something is wrong
      await inTurn(now, async (server) => {
        expect(await answersOf(server, world, from)).toMatchObject(answers[1] as Answers);
        await readEvents(server, world, 6 * feedIds.length, eventId);
        expect(await sendLines(server, linesAt(seconds + 7))).toEqual({ duplicate: feedIds.length });
        expect(await sendLines(server, linesAt(seconds + 8))).toEqual({ stored: feedIds.length });
      });
      await now.run(['store', 'verify']);
    } finally {
      world.remove();
      await postgres?.stop();
    }
  },
);

const metric = async ({ opsUrl }: Server, name: string): Promise<number> => {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  return [...text.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].reduce(
    (sum, [, n]) => sum + Number(n),
    0,
  );
};

/** Makes it a store of a format after this one. */
const raiseFormat = async (folder: string): Promise<void> => {
  const environment = open({ path: folder, maxDbs: 20 });
  const meta = environment.openDB<Buffer, Buffer>({ name: 'meta', encoding: 'binary', keyEncoding: 'binary' });
  const key = Buffer.from('format');
  const value = Buffer.from(meta.get(key) ?? []);
  value[0] = (value[0] ?? 0) + 1;
  value.writeUInt32BE(crc32(value.subarray(0, 1)), 1);
  await meta.put(key, value);
  await environment.close();
};

test('downgrade: this release refuses a store of a later format, and does not touch it', async () => {
  const world = await createWorld();
  try {
    await raiseFormat(join(world.store, 'reports'));
    const hash = () =>
      createHash('sha256')
        .update(readFileSync(join(world.store, 'reports/data.mdb')))
        .digest('hex');
    const before = hash();
    const { serve } = createOperator(world.folder, world.store, world.keyFile);
    await expect(serve()).rejects.toThrow(/has format 5; this release reads format 4\. Upgrade sealpost\./);
    expect(hash()).toBe(before);
  } finally {
    world.remove();
  }
});
