// The statements that nodes send, as they work in PostgreSQL at READ COMMITTED: each sees what is committed when it begins, and waits where it asks
// for a lock. tests/schedules/database.test.ts compares them with PostgreSQL itself.
import { positionMax } from '../../../server/src/store/postgres/append.ts';
import { keyBytes } from '../../../server/src/store/postgres/rows.ts';
import { schemaVersion } from '../../../server/src/store/postgres/schema.ts';
import type { Row, View } from './tables.ts';

export type Parameters = readonly unknown[];

/** An error of the database, by its SQLSTATE. */
export class SqlError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

export type Context = {
  readonly view: View;
  readonly nowMs: number;
  /** Notifies a channel when the transaction commits. */
  readonly notify: (channel: string, payload: string) => void;
};

/** Yields the names of locks that it needs; goes on when it has them. Returns rows. */
export type Execution = Generator<string, readonly Row[], void>;
type Statement = (context: Context, parameters: Parameters, match: RegExpExecArray) => Execution;

const numbers = (list: unknown): number[] => {
  const text = String(list).slice(1, -1);
  return text === '' ? [] : text.split(',').map(Number);
};
/** Feed IDs as hex digits, of a list of `bytea`. */
const hexes = (list: unknown): string[] => [...String(list).matchAll(/\\\\x([0-9a-f]*)/g)].map(([, hex]) => hex ?? '');
const texts = (list: unknown): string[] =>
  [...String(list).matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => (text ?? '').replaceAll(/\\(.)/g, '$1'));
const bytes = (hex: unknown): Buffer => Buffer.from(String(hex), 'hex');
const bufferOf = (value: unknown): Buffer => {
  const array = value as Uint8Array; // what `bytea` parameters are
  return Buffer.from(array.buffer, array.byteOffset, array.length);
};
const num = (row: Row | undefined, column: string): number => row?.[column] as number; // columns are typed by who stored them
const markOfBatch = (row: Row | undefined): Buffer | null =>
  row === undefined ? null : Buffer.from((row.keys as Buffer).subarray(0, 4)); // as above

const reportKey = (feed: string, observations: number): string => `${feed}/${observations}`;

/** Reports of a table: the parent has those of all partitions that are attached. */
const reportAt = (view: View, table: string, feed: string, observations: number): Row | undefined => {
  const row = view.get('reports', reportKey(feed, observations));
  return row === undefined || table === parent || row.leaf === table ? row : undefined;
};

const parent = '"sealpost".reports';

const requireTable = (view: View, table: string): void => {
  if (table !== parent && view.get('relations', table) === undefined)
    throw new SqlError('42P01', `relation ${table} does not exist`);
};

const duplicate = (what: string) => new SqlError('23505', `duplicate key value violates unique constraint on ${what}`);

function* selectCounters({ view }: Context, [at]: Parameters): Execution {
  const mark = markOfBatch(view.get('appended', String(at)));
  return view.rows('counters').map(({ name, value }) => ({ name, value, mark }));
}

function* takePositions({ view }: Context, [count, keys]: Parameters): Execution {
  const n = Number(count);
  const batches = view.rows('appended');
  const lastOf = (row: Row): number => num(row, 'last_position');
  const last = Math.max(0, ...batches.map(lastOf).filter((position) => position <= positionMax));
  yield 'counters/position';
  const counter = view.get('counters', 'position');
  const value = (counter === undefined ? last : Math.max(num(counter, 'value'), last)) + n;
  view.put('counters', 'position', { name: 'position', value });
  yield `appended/${value}`;
  if (view.get('appended', `${value}`) !== undefined) throw duplicate('appended');
  const first = value - n + 1;
  view.put('appended', `${value}`, { last_position: value, first_position: first, keys: Buffer.from(bufferOf(keys)) });
  // As of the beginning of the statement, like the list of batches.
  return [{ first_position: first, before: markOfBatch(batches.find((row) => lastOf(row) === first - 1)) }];
}

function* insertReports({ view }: Context, parameters: Parameters, match: RegExpExecArray): Execution {
  const [keys, records, observations, validFrom, starts, lengths] = parameters;
  const [, leaf = '', onConflict] = match;
  requireTable(view, leaf);
  const [all, packed] = [bufferOf(keys), bufferOf(records)];
  const [from, start, length] = [numbers(validFrom), numbers(starts), numbers(lengths)];
  for (const [i, at] of numbers(observations).entries()) {
    const feed = all.toString('hex', 4 + i * keyBytes, 4 + i * keyBytes + 32);
    const begin = (start[i] ?? 0) - 1;
    const record = Buffer.from(packed.subarray(begin, begin + (length[i] ?? 0)));
    const key = reportKey(feed, at);
    yield `reports/${key}`;
    if (view.get('reports', key) !== undefined && onConflict === undefined) throw duplicate('reports');
    view.put('reports', key, { feed, observations: at, valid_from: from[i], record, leaf });
  }
  return [];
}

function* raiseHeads({ view }: Context, [feeds, newest]: Parameters): Execution {
  const at = numbers(newest);
  for (const [i, feed] of hexes(feeds).entries()) {
    yield `heads/${feed}`;
    const observations = at[i] ?? 0;
    const head = view.get('heads', feed);
    if (head === undefined || num(head, 'observations') < observations) view.put('heads', feed, { feed, observations });
  }
  return [];
}

function* countReports({ view }: Context, [start, reports, size]: Parameters): Execution {
  const key = String(start);
  if (view.get('partitions', key) === undefined) return [];
  yield `partitions/${key}`;
  const row = view.get('partitions', key);
  if (row !== undefined)
    view.put('partitions', key, {
      ...row,
      reports: num(row, 'reports') + Number(reports),
      report_bytes: num(row, 'report_bytes') + Number(size),
    });
  return [];
}

function* selectNeighbors({ view }: Context, [feeds, validFrom, observations]: Parameters): Execution {
  const [from, to] = [numbers(validFrom), numbers(observations)];
  const reports = view.rows('reports');
  return hexes(feeds).flatMap((feed, i) => {
    const own = reportAt(view, parent, feed, to[i] ?? 0);
    const after = reports.filter((row) => row.feed === feed && num(row, 'observations') >= (from[i] ?? 0));
    const next = after.sort((a, b) => num(a, 'observations') - num(b, 'observations')).slice(0, 2);
    return [...(own ? [own] : []), ...next].map((row) => ({
      n: i + 1,
      observations: row.observations,
      valid_from: row.valid_from,
      record: row.record,
    }));
  });
}

function* selectRowsOfKeys({ view }: Context, [feeds, lists]: Parameters, match: RegExpExecArray): Execution {
  const table = match[1] ?? '';
  requireTable(view, table);
  const wanted = texts(lists).map(numbers);
  const found = hexes(feeds).flatMap((feed, i) =>
    [...new Set(wanted[i])].flatMap((at) => {
      const row = reportAt(view, table, feed, at);
      return row === undefined ? [] : [{ ...row, n: i + 1 }];
    }),
  );
  return found.map(({ n, observations, valid_from, record }: Row) => ({ n, observations, valid_from, record }));
}

function* selectHeads({ view }: Context): Execution {
  return view.rows('heads').map(({ feed, observations }) => {
    const row = reportAt(view, parent, String(feed), Number(observations));
    return {
      feed_id: bytes(feed),
      observations: row?.observations ?? null,
      valid_from: row?.valid_from ?? null,
      record: row?.record ?? null,
    };
  });
}

function* selectBatches({ view }: Context, [after, limit]: Parameters): Execution {
  return view
    .rows('appended')
    .filter((row) => num(row, 'last_position') > Number(after))
    .sort((a, b) => num(a, 'last_position') - num(b, 'last_position'))
    .slice(0, Number(limit))
    .map(({ first_position, last_position, keys }) => ({ first_position, last_position, keys }));
}

function* createLeaf({ view }: Context, _: Parameters, match: RegExpExecArray): Execution {
  const name = match[1] ?? '';
  yield `relations/${name}`;
  if (view.get('relations', name) !== undefined) throw new SqlError('42P07', `relation ${name} already exists`);
  view.put('relations', name, { name });
  return [];
}

function* insertPartition({ view }: Context, [start]: Parameters): Execution {
  const key = String(start);
  yield `partitions/${key}`;
  if (view.get('partitions', key) !== undefined) throw duplicate('partitions');
  view.put('partitions', key, { start_ms: Number(start), reports: 0, report_bytes: 0 });
  return [];
}

const [heardMs, keptMs, aheadMs] = [1_000, 5_000, 1_000];

/** One statement, one moment: what it inserts and deletes, its own select does not see. */
function* exchangeNews({ view, nowMs }: Context, [node, turn, news, heard, turns]: Parameters): Execution {
  const told = bufferOf(news);
  const known = new Map(texts(heard).map((name, i) => [name, numbers(turns)[i] ?? 0]));
  const rows = view.rows('nodeNews');
  const isWithin = (row: Row, ms: number) =>
    num(row, 'told_at') >= nowMs - ms && num(row, 'told_at') <= nowMs + aheadMs;
  const found = rows
    .filter(
      (row) => row.node !== node && num(row, 'turn') > (known.get(String(row.node)) ?? 0) && isWithin(row, heardMs),
    )
    .sort((a, b) => (a.node === b.node ? num(a, 'turn') - num(b, 'turn') : String(a.node) < String(b.node) ? -1 : 1));
  const gone = rows.filter((row) => !isWithin(row, keptMs));
  if (told.length > 0) {
    const key = `${node}/${turn}`;
    yield `nodeNews/${key}`;
    if (view.get('nodeNews', key) !== undefined) throw duplicate('node_news');
    view.put('nodeNews', key, { node, turn: Number(turn), told_at: nowMs, news: Buffer.from(told) });
  }
  for (const row of gone) {
    yield `nodeNews/${row.node}/${row.turn}`;
    view.put('nodeNews', `${row.node}/${row.turn}`, undefined);
  }
  return found.map((row) => ({ node: row.node, turn: row.turn, news: row.news }));
}

function* addConfirmed({ view }: Context): Execution {
  yield 'counters/confirmed';
  const row = view.get('counters', 'confirmed');
  if (row !== undefined) view.put('counters', 'confirmed', { ...row, value: num(row, 'value') + 1 });
  return [];
}

function* selectPartitions({ view }: Context, [starts]: Parameters): Execution {
  const wanted = starts === undefined ? undefined : new Set(numbers(starts));
  const rows = view.rows('partitions').filter((row) => wanted?.has(num(row, 'start_ms')) ?? true);
  return rows.map(({ start_ms }) => ({ start_ms }));
}

function* selectKnownHeads({ view }: Context, [feeds]: Parameters): Execution {
  return hexes(feeds).flatMap((feed) => {
    const row = view.get('heads', feed);
    return row === undefined ? [] : [{ feed_id: bytes(feed), observations: row.observations }];
  });
}

function* takeAdvisoryLock(_: Context, [family, schema]: Parameters): Execution {
  yield `advisory/${family}/${schema}`;
  return [{ pg_advisory_xact_lock: '' }];
}

/** A statement that needs no lock. */
const atOnce = (act: (context: Context, parameters: Parameters) => readonly Row[]): Statement =>
  function* (context, parameters) {
    yield* [];
    return act(context, parameters);
  };

/** Every statement by its text, with single spaces. */
const statements: readonly (readonly [RegExp, Statement])[] = [
  [/^SELECT set_config\('synchronous_commit', /, atOnce(() => [{ set_config: 'warning' }])],
  [/^SELECT pg_advisory_xact_lock\(\$1::int, \$2::int\)$/, takeAdvisoryLock],
  [
    /^SELECT name, value, \(SELECT substring\(keys FROM 1 FOR 4\) FROM "sealpost"\.appended WHERE last_position = \$1::bigint\) AS mark FROM "sealpost"\.counters$/,
    selectCounters,
  ],
  [
    /^SELECT first_position, last_position, keys FROM "sealpost"\.appended WHERE last_position > \$1::bigint ORDER BY last_position LIMIT \$2::int$/,
    selectBatches,
  ],
  [
    /^SELECT k\.n, r\.observations, r\.valid_from, r\.record FROM unnest.* CROSS JOIN LATERAL \(SELECT observations, valid_from, record FROM (\S+) WHERE feed_id = k\.feed_id AND observations = ANY\(k\.observations::bigint\[\]\)\) AS r$/,
    selectRowsOfKeys,
  ],
  [/^SELECT feed_id, observations FROM "sealpost"\.heads WHERE feed_id = ANY\(\$1::bytea\[\]\)$/, selectKnownHeads],
  [/^SELECT start_ms FROM "sealpost"\.partitions(?: WHERE start_ms = ANY\(\$1::bigint\[\]\))?$/, selectPartitions],
  [
    /^SELECT k\.n, r\.observations, r\.valid_from, r\.record FROM unnest.*ORDER BY observations LIMIT 2\) \) AS r$/,
    selectNeighbors,
  ],
  [
    /^WITH before AS \(SELECT coalesce\(max\(last_position\), 0\).* RETURNING first_position, \(SELECT .* WHERE last_position = a\.first_position - 1\) AS before$/,
    takePositions,
  ],
  [
    /^INSERT INTO (\S+) \(feed_id, observations, valid_from, record\) SELECT substring.* AS r\(observations, valid_from, start, bytes, n\) (ON CONFLICT .*)?$/,
    insertReports,
  ],
  [
    /^UPDATE "sealpost"\.partitions SET reports = reports \+ \$2::bigint, report_bytes = report_bytes \+ \$3::bigint WHERE start_ms = \$1::bigint$/,
    countReports,
  ],
  [
    /^INSERT INTO "sealpost"\.heads AS h SELECT \* FROM unnest.* DO UPDATE SET observations = excluded\.observations WHERE h\.observations < excluded\.observations$/,
    raiseHeads,
  ],
  [
    /^SELECT pg_notify\(\$1::text, \$2::text\)$/,
    atOnce(({ notify }, [channel, payload]) => {
      notify(String(channel), String(payload));
      return [{ pg_notify: '' }];
    }),
  ],
  [/^UPDATE "sealpost"\.counters SET value = value \+ 1 WHERE name = 'confirmed'$/, addConfirmed],
  [/^SELECT h\.feed_id, r\.\* FROM "sealpost"\.heads AS h LEFT JOIN LATERAL/, selectHeads],
  [
    /^SELECT value FROM "sealpost"\.counters WHERE name = 'position'$/,
    atOnce(({ view }) => [{ value: view.get('counters', 'position')?.value }]),
  ],
  [
    /^SELECT name FROM unnest\(\$1::text\[\]\) AS n\(name\) WHERE to_regclass\(name\) IS NOT NULL$/,
    atOnce(({ view }, [names]) =>
      texts(names)
        .filter((name) => view.get('relations', name) !== undefined)
        .map((name) => ({ name })),
    ),
  ],
  [/^CREATE TABLE (\S+) \(LIKE \S+ INCLUDING DEFAULTS INCLUDING CONSTRAINTS\)$/, createLeaf],
  [/^ALTER TABLE \S+ ATTACH PARTITION \S+ FOR VALUES FROM \(\d+\) TO \(\d+\)$/, atOnce(() => [])],
  [/^INSERT INTO "sealpost"\.partitions \(start_ms\) VALUES \(\$1::bigint\)$/, insertPartition],
  [/^WITH told AS \( INSERT INTO "sealpost"\.node_news .* ORDER BY n\.node, n\.turn$/, exchangeNews],
  [
    /^SELECT version, partition_ms FROM "sealpost"\.layout$/,
    atOnce(() => [{ version: schemaVersion, partition_ms: 86_400_000 }]),
  ],
];

const known = new Map<string, readonly [Statement, RegExpExecArray]>();

const findStatement = (text: string): readonly [Statement, RegExpExecArray] => {
  const found = known.get(text);
  if (found !== undefined) return found;
  const spaced = text.replaceAll(/\s+/g, ' ');
  for (const [pattern, statement] of statements) {
    const match = pattern.exec(spaced);
    if (match === null) continue;
    known.set(text, [statement, match]);
    return [statement, match];
  }
  throw new Error(`The simulated database has no such statement: ${text}`);
};

export const execute = (context: Context, text: string, parameters: Parameters): Execution => {
  const [statement, match] = findStatement(text);
  return statement(context, parameters, match);
};
