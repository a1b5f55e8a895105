// The simulated database against PostgreSQL: what the sessions of random schedules sent, in the same order, with the same answers, waits and notifications.
import postgres from 'postgres';
import { afterAll, expect, test } from 'vitest';
import { createPartitionLookup, createPartitionTables } from '../../server/src/store/postgres/partitions.ts';
import { migratePostgres, tablesOf } from '../../server/src/store/postgres/schema.ts';
import { isFull } from '../support/full-count.ts';
import { startPostgres } from '../support/running-postgres.ts';
import type { AppendVariant } from './append.ts';
import { createServer, type TraceEntry } from './database/server.ts';
import { startTables } from './database/start.ts';
import type { Row } from './database/tables.ts';
import { createExecutor } from './executor.ts';
import { appendingWithoutLock } from './planted.ts';
import { firstSecond } from './sample-reports.ts';
import { type ProtocolName, showSchedule } from './search.ts';

const server = await startPostgres();
const admin = server.connect();
afterAll(server.stop);

const t = tablesOf('sealpost');
const dayMs = 86_400_000;

/** A store without reports, with the partitions of the first days, as schedules begin with. */
const renewStore = async (): Promise<void> => {
  await admin.unsafe('DROP SCHEMA IF EXISTS sealpost CASCADE');
  await migratePostgres(server.url('sealpost'));
  const partitionOf = createPartitionLookup(t, dayMs);
  const run = async <R>(text: string, parameters: readonly unknown[] = []) =>
    (await admin.unsafe(text, parameters as string[])) as unknown as readonly R[]; // rows as the caller names them
  await createPartitionTables(
    run,
    t,
    [0, 1, 2].map((day) => partitionOf(firstSecond * 1_000 + day * dayMs)),
  );
};

/** Without what is another one each time: the order of rows. */
const plain = (rows: readonly Row[]): readonly string[] =>
  rows
    .map((row) =>
      JSON.stringify(row, (_, value) => (value?.type === 'Buffer' ? Buffer.from(value.data).toString('hex') : value)),
    )
    .sort();

type Answer = { readonly rows?: readonly string[]; readonly code?: string };
type RealSession = {
  readonly sql: postgres.Sql;
  readonly pid: number;
  answer: Promise<Answer>;
  isAnswered: boolean;
  /** Does its statement wait for another session in the schedule? */
  isBlocked: boolean;
  text: string;
  readonly heard: string[];
};

const openSession = async (): Promise<RealSession> => {
  const sql = postgres(server.base, {
    max: 1,
    fetch_types: false,
    onnotice: () => {},
    types: { bigint: { to: 20, from: [20], parse: Number, serialize: String } },
  });
  const [row] = await sql`SELECT pg_backend_pid() AS pid`;
  return {
    sql: sql as unknown as postgres.Sql,
    pid: row?.pid as number,
    answer: Promise.resolve({}),
    isAnswered: true,
    isBlocked: false,
    text: '',
    heard: [],
  }; // one row
};

/** Gives what nodes told each other the ages that it has in the schedule; `now()` is the same until the transaction ends. */
const setAges = async (sql: postgres.Sql, toldAt: ReadonlyMap<string, number>, nowMs: number): Promise<void> => {
  for (const [name, atMs] of toldAt)
    await sql.unsafe(
      `UPDATE ${t.nodeNews} SET told_at = now() - $1::float8 * interval '1 millisecond' WHERE node || '/' || turn = $2::text`,
      [nowMs - atMs, name],
    );
};

const send = async (
  session: RealSession,
  { text, parameters, nowMs }: Extract<TraceEntry, { kind: 'began' }>,
  toldAt: Map<string, number>,
): Promise<Answer> => {
  const { sql } = session;
  const isExchange = text.startsWith('WITH told AS');
  try {
    if (isExchange) {
      await sql.unsafe('begin');
      await setAges(sql, toldAt, nowMs);
    }
    const rows = await sql.unsafe(text, parameters as string[], { prepare: true });
    if (isExchange) {
      await sql.unsafe('commit');
      if ((parameters[2] as Uint8Array).length > 0) toldAt.set(`${parameters[0]}/${parameters[1]}`, nowMs); // as it is sent
    }
    return { rows: plain(rows) };
  } catch (error) {
    return { code: (error as postgres.PostgresError).code };
  }
};

/** The sessions whose locks one waits for, and those that these wait for; none while it does not wait. */
const blockersOf = async (pid: number): Promise<readonly number[]> => {
  const rows = await admin<{ pid: number }[]>`
    WITH RECURSIVE blockers(pid) AS (
      SELECT unnest(pg_blocking_pids(${pid}::int)) UNION SELECT unnest(pg_blocking_pids(blockers.pid)) FROM blockers)
    SELECT pid FROM blockers`;
  return rows.map((row) => row.pid);
};

/** PostgreSQL waits too, for the same session or for one that waits for it. */
const compareWait = async (session: RealSession, by: RealSession | undefined): Promise<void> => {
  let blockers: readonly number[] = [];
  await expect
    .poll(async () => {
      blockers = await blockersOf(session.pid);
      return session.isAnswered || blockers.length > 0;
    })
    .toBe(true);
  expect(session.isAnswered, `PostgreSQL does not wait: ${session.text}`).toBe(false);
  expect(blockers, `PostgreSQL waits for another session: ${session.text}`).toContain(by?.pid);
};

/** Who waits still waits, before anything else is sent. */
const compareWaiting = async (all: readonly RealSession[]): Promise<void> => {
  for (const { isBlocked, pid, text } of all)
    if (isBlocked) expect(await blockersOf(pid), `PostgreSQL waits no longer: ${text}`).not.toEqual([]);
};

/** The answer, unless PostgreSQL waits for a session that runs nothing, where the simulation waits no longer. */
const answerOf = async (session: RealSession, all: readonly RealSession[]): Promise<Answer> => {
  await expect
    .poll(async () => {
      const idle = new Set(all.filter((one) => one.isAnswered).map(({ pid }) => pid));
      const blockers = session.isAnswered ? [] : await blockersOf(session.pid);
      return session.isAnswered || blockers.some((pid) => idle.has(pid));
    })
    .toBe(true);
  expect(session.isAnswered, `PostgreSQL waits, the simulation does not: ${session.text}`).toBe(true);
  return session.answer;
};

/** Sends what was sent in a schedule; returns how many statements waited for another session. */
const replay = async (trace: readonly TraceEntry[]): Promise<number> => {
  await renewStore();
  const sessions = new Map<number, RealSession>();
  try {
    return await replayIn(sessions, trace);
  } finally {
    // Also after a failure: the locks of an open transaction would hold up the next store.
    for (const { sql } of sessions.values()) await sql.end({ timeout: 1 });
  }
};

const replayIn = async (sessions: Map<number, RealSession>, trace: readonly TraceEntry[]): Promise<number> => {
  const toldAt = new Map<string, number>();
  const expected = new Map<number, string[]>();
  let waited = 0;
  for (const entry of trace) {
    const session = sessions.get(entry.session) ?? (await openSession());
    sessions.set(entry.session, session);
    if (entry.kind === 'began') {
      await compareWaiting([...sessions.values()]);
      session.isAnswered = false;
      session.text = entry.text;
      if (entry.text.startsWith('listen ')) {
        await session.sql.listen(entry.text.slice('listen '.length), (payload) => session.heard.push(payload));
        session.answer = Promise.resolve({ rows: [] });
        session.isAnswered = true;
      } else
        session.answer = send(session, entry, toldAt).finally(() => {
          session.isAnswered = true;
        });
    } else if (entry.kind === 'blocked') {
      waited += 1;
      session.isBlocked = true;
      await compareWait(session, sessions.get(entry.by ?? -1));
    } else if (entry.kind === 'ended') {
      session.isBlocked = false;
      const { reply } = entry;
      const simulated =
        reply.kind === 'rows' ? { rows: plain(reply.rows) } : { code: reply.kind === 'error' ? reply.code : '' };
      expect(await answerOf(session, [...sessions.values()])).toEqual(simulated);
    } else if (entry.reply.kind === 'notification')
      expected.set(entry.session, [...(expected.get(entry.session) ?? []), entry.reply.payload]);
  }
  for (const [id, payloads] of expected) await expect.poll(() => sessions.get(id)?.heard).toEqual(payloads);
  return waited;
};

type TraceOptions = { readonly variant?: AppendVariant; readonly when?: (atMs: number) => number };

const traceOf = async (
  protocol: ProtocolName,
  seed: number,
  { variant = {}, ...options }: TraceOptions = {},
): Promise<readonly TraceEntry[]> => {
  const trace: TraceEntry[] = [];
  const traced = {
    ...variant,
    replication: 'single',
    isCalm: true,
    trace: (entry: TraceEntry) => trace.push(entry),
  } as const;
  await showSchedule(protocol, traced, seed, { hasFaults: false, ...options });
  return trace;
};

const seeds = Array.from({ length: isFull ? 6 : 2 }, (_, i) => 101 + i);

test('simulated database: appends and follows get the answers of PostgreSQL', async () => {
  let statements = 0;
  for (const seed of seeds) {
    const trace = await traceOf('append', seed);
    statements += trace.filter(({ kind }) => kind === 'began').length;
    await replay(trace);
  }
  expect(statements).toBeGreaterThan(80 * seeds.length);
});

test('simulated database: what nodes tell each other is as old, and as long there, as in PostgreSQL', async () => {
  for (const seed of seeds.slice(0, 1)) await replay(await traceOf('limits', seed));
});

/** Once the nodes are open, all of them append at nearly the same time. */
const crowded = (atMs: number): number => 150 + atMs / 100;

/** With the seeds of schedules in which sessions wait most, or fail while others wait; of rows, one at a time, since PostgreSQL leaves open which goes next. */
test.each([
  ['the lock of appends', {}, [30, 44, 111]],
  ['rows, of appends without that lock', appendingWithoutLock, [196, 306, 315, 323]],
] as const)('simulated database: sessions wait for each other as in PostgreSQL: %s', async (_, variant, crowds) => {
  let waited = 0;
  for (const seed of crowds) waited += await replay(await traceOf('append', seed, { variant, when: crowded }));
  expect(waited).toBeGreaterThan(8);
});

/** What a simulated server does with statements, one after the other, of sessions by their numbers. */
const traceOfStatements = (statements: readonly (readonly [session: number, text: string, ...unknown[]])[]) => {
  const trace: TraceEntry[] = [];
  const server = createServer({
    executor: createExecutor(),
    committed: startTables(true),
    isSynchronous: false,
    logged: () => {},
    shown: () => {},
    trace: (entry) => trace.push(entry),
  });
  const options = { statementMs: 1_000, isFleeting: false, reply: () => {} };
  const sessions = [server.open(options), server.open(options)];
  for (const [session, text, ...parameters] of statements) sessions[session]?.receive(text, parameters);
  return trace;
};

test('simulated database: a transaction that failed has no locks, as in PostgreSQL', async () => {
  const begin = 'begin isolation level read committed';
  const confirm = `UPDATE ${t.counters} SET value = value + 1 WHERE name = 'confirmed'`;
  const insertExisting = [
    `INSERT INTO ${t.partitions} (start_ms) VALUES ($1::bigint)`,
    createPartitionLookup(t, dayMs)(firstSecond * 1_000).startMs,
  ] as const;
  const trace = traceOfStatements([
    [0, begin],
    [1, begin],
    [0, confirm],
    [1, confirm],
    [0, ...insertExisting],
    [0, 'rollback'],
    [1, 'commit'],
  ]);
  expect(await replay(trace)).toBe(1);
});
