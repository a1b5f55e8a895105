// Rows of PostgreSQL that are not what was written: each costs what it holds, and nothing else.
import postgres from 'postgres';
import { afterAll, expect, test } from 'vitest';
import { act, testStream } from '../../../../tests/support/running-ingest.ts';
import { startPostgres } from '../../../../tests/support/running-postgres.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import type { StoredReport } from '../store.ts';

const { report } = await createSignedReports();
const server = await startPostgres();
const database = server.connect();
afterAll(server.stop);

const t0 = 1_763_200_000;
const [first, second] = [secondStream(1), secondStream(2)];
const run = (from: number, count: number, feedId = first): StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(feedId, t0 + from + i, t0 + from + i));
const keysOf = (reports: readonly StoredReport[]) => reports.map(({ observationsMs }) => observationsMs / 1_000 - t0);

test('postgres damage: corrupt rows count as missing, are named, and are replaced when the report is sent again', async () => {
  const store = await openStore(server.url('rotten'), 'write');
  await store.reports.append([...run(0, 5), ...run(0, 5, second)]);
  await store.reports.append(run(5, 3));
  await store.reports.append(run(8, 2));
  const streams = [testStream(first), testStream(second)];
  await store.admin.update('stream', [first, second], () => streams, act);
  await store.close();
  for (const second of [2, 9])
    await database`UPDATE rotten.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
      WHERE observations = ${(t0 + second) * 1_000}`;
  await database`UPDATE rotten.appended SET keys = set_byte(keys, 10, 255 - get_byte(keys, 10)) WHERE last_position = 13`;
  await database`UPDATE rotten.records SET record = set_byte(record, 10, 255 - get_byte(record, 10)) WHERE key = ${first}`;
  await database`UPDATE rotten.audit SET record = set_byte(record, 10, 255 - get_byte(record, 10))`;
  const damaged = await openStore(server.url('rotten'), 'write');
  const { reports, admin } = damaged;
  try {
    expect(reports.latest(first)?.observationsMs).toBe((t0 + 8) * 1_000);
    expect(await reports.at([first, second], t0 + 2)).toEqual([undefined, undefined]);
    expect(await reports.neighbours(first, t0 + 2)).toMatchObject({ damaged: true });
    expect(keysOf((await reports.page(first, t0, 4)).reports)).toEqual([0, 1, 3, 4]);
    expect(await reports.renderedPage(first, t0, 4)).toMatchObject({
      damaged: true,
      more: true,
      lastMs: (t0 + 4) * 1_000,
    });
    // The batch of positions 11 to 13 is not known; what is around it is read.
    const appended = await reports.appendedAfter(0, 100);
    expect([appended.missed, appended.position, keysOf(appended.reports)]).toEqual([
      true,
      15,
      [0, 1, 3, 4, 0, 1, 3, 4, 8],
    ]);
    expect(await reports.appendedAfter(10, 1)).toMatchObject({ missed: true, positions: [14] });
    expect(await admin.list('stream')).toEqual([streams[1]]);
    expect((await damaged.findDamage()).map(({ table }) => table)).toEqual(['records', 'audit', 'appended']);
    await admin.update('stream', [first], () => streams.slice(0, 1), act);
    expect(await admin.list('stream')).toEqual(streams);
    expect(await reports.append([...run(0, 10), ...run(0, 5, second)])).toEqual(
      [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4].map((n) => (n === 2 || n === 9 ? 'stored' : 'duplicate')),
    );
    expect(keysOf((await reports.page(first, t0, 100)).reports)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    expect(damaged.damage().map(({ table }) => table)).toContain('reports');
  } finally {
    await damaged.close();
  }
});

test('postgres damage: where the newest report of a stream counts as older than it is, reports are still compared with all that are stored', async () => {
  const store = await openStore(server.url('behind'), 'write');
  try {
    await store.reports.append(run(0, 5));
    await database`UPDATE behind.heads SET observations = ${(t0 + 1) * 1_000}`;
    const other = report(first, t0 + 3, t0 + 3, 5n);
    expect(await store.reports.append([...run(2, 1), other, ...run(5, 1)])).toEqual([
      'duplicate',
      'conflict',
      'stored',
    ]);
    expect((await store.reports.page(first, t0, 10)).reports).toEqual(run(0, 6));
    const [head] = await database`SELECT observations FROM behind.heads`;
    expect(Number(head?.observations)).toBe((t0 + 5) * 1_000);
  } finally {
    await store.close();
  }
});

test('postgres damage: a row whose key is damaged hides no report behind it, and the windows around it are those of intact reports', async () => {
  const store = await openStore(server.url('astray'), 'write');
  try {
    // Each holds for ten seconds.
    await store.reports.append([0, 10, 20, 30].map((at) => report(first, t0 + at + 1, t0 + at + 10)));
    await database`UPDATE astray.reports SET observations = ${(t0 + 14) * 1_000}, valid_from = ${(t0 + 11) * 1_000}
      WHERE observations = ${(t0 + 40) * 1_000}`;
    const { at, neighbours, page } = store.reports;
    expect((await at([first], t0 + 13)).map((one) => one?.observationsMs)).toEqual([(t0 + 20) * 1_000]);
    expect(await neighbours(first, t0 + 13)).toEqual({
      previous: { validFromMs: (t0 + 1) * 1_000, observationsMs: (t0 + 10) * 1_000 },
      next: { validFromMs: (t0 + 11) * 1_000, observationsMs: (t0 + 20) * 1_000 },
    });
    expect(keysOf((await page(first, t0, 2)).reports)).toEqual([10, 20]);
    expect(await store.reports.renderedPage(first, t0 + 15, 1)).not.toHaveProperty('damaged');
    expect((await store.findDamage()).map(({ table, key }) => [table, key])).toEqual([['heads', first]]);
    // Nor does its window decide what becomes of other reports.
    await store.reports.append([report(first, t0 + 51, t0 + 60)]);
    await database`UPDATE astray.reports SET valid_from = ${(t0 + 21) * 1_000} WHERE observations = ${(t0 + 60) * 1_000}`;
    const sent = [report(first, t0 + 31, t0 + 40), report(first, t0 + 51, t0 + 60), report(first, t0 + 12, t0 + 13)];
    expect(await store.reports.append(sent)).toEqual(['stored', 'stored', 'overlap']);
  } finally {
    await store.close();
  }
});

test('postgres damage: a page passes damaged rows, and where there are too many of them it names them instead of reading on', async () => {
  const store = await openStore(server.url('ruined'), 'write');
  try {
    await store.reports.append([...run(0, 3), ...run(2_000, 1)]);
    const ruin = (from: number, to: number) => database`INSERT INTO ruined.reports
      SELECT feed_id, ${t0 * 1_000}::bigint + n * 1000, ${t0 * 1_000}::bigint + n * 1000, '\\x00'::bytea
      FROM ruined.heads, generate_series(${from}::int, ${to}::int) AS n`;
    await ruin(3, 300);
    expect(keysOf((await store.reports.page(first, t0 + 2, 2)).reports)).toEqual([2, 2_000]);
    await ruin(301, 1_999);
    expect(keysOf((await store.reports.page(first, t0, 3)).reports)).toEqual([0, 1, 2]);
    expect(await store.reports.renderedPage(first, t0 + 2, 2)).toMatchObject({ more: true, lastMs: (t0 + 2) * 1_000 });
    await expect(store.reports.page(first, t0 + 3, 2)).rejects.toThrow('are damaged');
    expect(await store.reports.at([first], t0 + 3)).toEqual([undefined]);
    expect(store.reports.latest(first)?.observationsMs).toBe((t0 + 2_000) * 1_000);
  } finally {
    await store.close();
  }
});

test('postgres damage: a node that follows past a damaged batch reports that something was missed', async () => {
  const store = await openStore(server.url('gapped'), 'write');
  const reader = await openStore(server.url('gapped'), 'read');
  try {
    await store.reports.append(run(0, 2));
    await database.unsafe(`
      CREATE FUNCTION gapped.damage() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN NEW.keys := set_byte(NEW.keys, 10, 255 - get_byte(NEW.keys, 10)); RETURN NEW; END $$;
      CREATE TRIGGER damage BEFORE INSERT ON gapped.appended FOR EACH ROW WHEN (NEW.last_position = 4) EXECUTE FUNCTION gapped.damage()`);
    await store.reports.append(run(2, 2));
    await store.reports.append(run(4, 2));
    await new Promise<void>((resolve) => {
      const look = () => reader.reports.newestMs(first) === (t0 + 5) * 1_000 && resolve();
      reader.reports.onAppended(look);
      look();
    });
    expect(await reader.reports.appendedAfter(0, 2)).toMatchObject({ missed: false, positions: [1, 2] });
    expect(await reader.reports.appendedAfter(1, 100)).toMatchObject({
      missed: true,
      positions: [2, 5, 6],
      position: 6,
    });
    expect(await reader.reports.appendedAfter(4, 100)).toMatchObject({ missed: false, positions: [5, 6] });
    expect(reader.damage()).toMatchObject([{ table: 'appended', key: '4' }]);
  } finally {
    await reader.close();
    await store.close();
  }
});

test('postgres damage: damaged positions, newest times, kinds and numbers are named, and stop neither reading nor writing', async () => {
  const store = await openStore(server.url('keys'), 'write');
  await store.reports.append(run(0, 3));
  await store.reports.append(run(3, 3));
  await store.reports.append(run(6, 3));
  const streams = [testStream(first), testStream(second)];
  await store.admin.update('stream', [first, second], () => streams, act);
  await store.admin.log(act);
  await store.close();
  await database`UPDATE keys.appended SET first_position = 2 WHERE last_position = 6`;
  await database`UPDATE keys.appended SET keys = ''::bytea WHERE last_position = 9`;
  await database`UPDATE keys.heads SET observations = ${(t0 + 500) * 1_000}`;
  await database`UPDATE keys.records SET kind = 'streal' WHERE key = ${first}`;
  await database`UPDATE keys.audit SET sequence = 1099511627776 WHERE sequence = 2`;
  const damaged = await openStore(server.url('keys'), 'write');
  const { reports, admin } = damaged;
  try {
    expect(reports.latest(first)?.observationsMs).toBe((t0 + 8) * 1_000);
    expect(await reports.appendedAfter(0, 100)).toMatchObject({ missed: false, positions: [1, 2, 3], position: 3 });
    expect(await reports.appendedAfter(3, 100)).toMatchObject({ missed: true, positions: [], position: 9 });
    expect(await admin.list('stream')).toEqual([streams[1]]);
    await admin.log(act);
    await admin.log(act);
    expect((await admin.auditAfter(0, 3)).map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    await expect(admin.auditAfter(3, 1)).rejects.toThrow('audit entry 1099511627776 holds entry 2');
    expect(await admin.auditNewest(2)).toMatchObject([
      { sequence: 3 },
      { sequence: 1_099_511_627_776, damaged: 'audit entry 1099511627776 holds entry 2' },
    ]);
    expect((await damaged.findDamage()).map(({ table, key }) => `${table} ${key}`)).toEqual([
      `records streal/${first}`,
      'audit 1099511627776',
      'appended 6',
      'appended 9',
      `heads ${first}`,
    ]);
    expect(await reports.append(run(9, 1))).toEqual(['stored']);
    expect(reports.latest(first)?.observationsMs).toBe((t0 + 9) * 1_000);
    expect(await reports.appendedAfter(9, 100)).toMatchObject({ missed: false, positions: [10] });
    await database`UPDATE keys.counters SET value = 7 WHERE name = 'position'`;
    expect(await damaged.findDamage()).toContainEqual({
      table: 'counters',
      key: 'position',
      reason: 'the last position is 7, the last appended batch ends at 10',
    });
    expect(await reports.append(run(10, 2))).toEqual(['stored', 'stored']);
    expect(await reports.appendedAfter(10, 100)).toMatchObject({ missed: false, positions: [11, 12] });
  } finally {
    await damaged.close();
  }
});

test('postgres damage: what is damaged in a read store is read from the primary, and named', async () => {
  await database`CREATE DATABASE twin`;
  const url = server.url('copied');
  const twin = new URL(url);
  twin.pathname = '/twin';
  for (const address of [url, twin.href]) {
    const store = await openStore(address, 'write');
    await store.reports.append(run(0, 3));
    await store.close();
  }
  // A copy has the batches of its primary, down to their random part.
  const [batch] = await database<{ keys: Buffer }[]>`SELECT keys FROM copied.appended`;
  const original = postgres(twin.href.replace(/\?.*/, ''));
  await original`UPDATE copied.appended SET keys = ${batch?.keys ?? ''}`;
  await original.end();
  await database`UPDATE copied.reports SET record = set_byte(record, 20, 255 - get_byte(record, 20))
    WHERE observations = ${(t0 + 1) * 1_000}`;
  const answered: string[] = [];
  const store = await openStore(twin.href, 'read', {
    replicas: [url],
    tell: (event) => void (event.kind === 'historyRead' && answered.push(event.by)),
  });
  try {
    for (const at of [0, 1])
      expect((await store.reports.at([first], t0 + at)).map((one) => one && keysOf([one]))).toEqual([[at]]);
    expect(keysOf((await store.reports.page(first, t0, 3)).reports)).toEqual([0, 1, 2]);
    expect(answered).toEqual(['replica', 'away', 'away']);
    expect(store.damage().map(({ key }) => key)).toEqual([`${first}/${(t0 + 1) * 1_000}`]);
  } finally {
    await store.close();
  }
});
