import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Field, reportSchemas } from '@sealpost/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DuckDb, openDuckDb } from '../../../../../tests/support/exports/duckdb.ts';
import {
  createSchemaReports,
  type SchemaReport,
  schemaVersions,
  streamOfSchema,
} from '../../../../../tests/support/exports/schema-reports.ts';
import { act, openRunningIngest, type RunningIngest, testStream } from '../../../../../tests/support/running-ingest.ts';
import { runCommand, type SampleOptions } from '../../sample-session.fixture.ts';

const { report, signerSets } = await createSchemaReports();
const midnight = 1_763_164_800; // 2025-11-15
const now = midnight + 86_400 + 7_200; // a day later, after late reports
const folder = mkdtempSync(join(tmpdir(), 'sealpost-export-'));
const fast = streamOfSchema(3, 1);
const wide = streamOfSchema(3);
const nameOf = (version: number): string => `V${version}/USD`;

const samples = schemaVersions.map((version) =>
  Array.from({ length: 8 }, (_, i) => report(streamOfSchema(version), version, midnight - 2 + i, i)),
);
const fastSample = Array.from({ length: 3 }, (_, i) => report(fast, 3, (midnight + 5) * 1_000 + 123 * i, i));
let running: RunningIngest;
let duck: DuckDb;

beforeAll(async () => {
  const streams = schemaVersions.map((version) =>
    testStream(streamOfSchema(version), { name: version === 2 ? '=V2,"x"/USD' : nameOf(version) }),
  );
  running = await openRunningIngest(
    [...streams, testStream(fast, { name: 'FAST/USD' })],
    signerSets,
    () => now * 1_000,
  );
  await running.store.reports.append([...samples.flat(), ...fastSample]);
  duck = await openDuckDb();
});
afterAll(async () => {
  duck.close();
  await running.close();
  rmSync(folder, { recursive: true, force: true });
});

const run = (args: readonly string[], options: SampleOptions = {}) =>
  runCommand(['export', ...args, '--store', running.folder], { nowMs: now * 1_000, ...options });
let folders = 0;
const newFolder = (): string => join(folder, `out-${++folders}`);
const filesOf = (path: string): readonly string[] => readdirSync(path).filter((name) => !name.startsWith('_'));

/** What a table has for a field, computed from the signed value alone. */
const expected = ({ body }: SchemaReport, unitMs = 1_000): Readonly<Record<string, unknown>> => {
  const cells: Record<string, unknown> = { feedID: body.feedId, version: BigInt(body.version) };
  const day9999 = BigInt(Date.UTC(10_000, 0, 1)) * 1_000n;
  for (const { name, type, unit } of reportSchemas[body.version].fields as readonly Field[]) {
    const raw = (body as unknown as Readonly<Record<string, bigint | number | string>>)[name] as
      | bigint
      | number
      | string;
    if (name === 'feedId') continue;
    if (type === 'bytes32') cells[name] = raw;
    else if (unit === 'stream time') {
      cells[name] = (BigInt(raw) * BigInt(unitMs)) / 1_000n;
      cells[`${name}UTC`] = BigInt(raw) * BigInt(unitMs) * 1_000n;
    } else {
      cells[name] = unit === 'count' ? BigInt(raw) * 10n ** 18n : BigInt(raw);
      const micros = unit === 'nanoseconds' ? BigInt(raw) / 1_000n : BigInt(raw) * 1_000_000n;
      if (unit === 'nanoseconds' || (unit === 'seconds' && name !== 'duration'))
        cells[`${name}UTC`] = micros < day9999 ? micros : null;
    }
  }
  return cells;
};

describe('parquet', () => {
  test('DuckDB reads every value of every schema as it was signed, in files by stream and day', async () => {
    const out = newFolder();
    const { code, stderr } = await run(['--all', '--format', 'parquet', '--out', out]);
    expect([code, stderr]).toEqual([0, `107 reports of 14 streams in 27 files, ${out}.\n`]);
    expect(filesOf(out)).toContain('V3-USD_2025-11-14.parquet');
    expect(filesOf(out)).toContain('V2-x-USD_2025-11-15.parquet');
    for (const [i, version] of schemaVersions.entries()) {
      const files = join(out, version === 2 ? 'V2-x-*.parquet' : `V${version}-*.parquet`);
      const rows = await duck.rows(`FROM '${files}' ORDER BY observationsTimestamp`);
      const name = version === 2 ? '=V2,"x"/USD' : nameOf(version);
      expect(rows, `version ${version}`).toEqual((samples[i] ?? []).map((one) => ({ name, ...expected(one) })));
    }
    const rows = await duck.rows(`FROM '${join(out, 'FAST-*.parquet')}' ORDER BY observationsTimestampUTC`);
    expect(rows).toEqual(fastSample.map((one) => ({ name: 'FAST/USD', ...expected(one, 1) })));
    expect(await duck.types(`FROM '${join(out, 'V11-*.parquet')}'`)).toMatchObject({
      mid: 'DECIMAL(38,18)',
      lastSeenTimestampNs: 'UBIGINT',
      observationsTimestampUTC: 'TIMESTAMP WITH TIME ZONE',
      observationsTimestamp: 'BIGINT',
    });
  });

  test('files of all schemas are read together by name, with the same types', async () => {
    const out = newFolder();
    await run(['--all', '--format', 'parquet', '--out', out, '--full-report']);
    const all = `read_parquet('${join(out, '*.parquet')}', union_by_name = true)`;
    expect(await duck.rows(`SELECT count(*) AS n, count(askVolume) AS volumes FROM ${all}`)).toEqual([
      { n: 107n, volumes: 16n },
    ]);
    const [row] = await duck.rows(
      `SELECT fullReport FROM ${all} WHERE name = 'V13/USD' AND observationsTimestamp = ${midnight}`,
    );
    expect(row?.fullReport).toBe(`0x${Buffer.from(samples[12]?.[2]?.fullReport ?? []).toString('hex')}`);
  });

  test('several compressed row groups hold what one would', async () => {
    const { createParquet } = await import('./parquet.ts');
    const columns = (['price', 'second', 'text'] as const).map((name, i) => ({
      name,
      kind: (['decimal', 'number', 'text'] as const)[i] ?? 'text',
      read: () => null,
    }));
    const rows = Array.from({ length: 20_001 }, (_, i) => [
      BigInt(i - 12_000) * 10n ** 20n,
      i,
      i % 7 === 0 ? null : 'same',
    ]);
    const encoder = createParquet(columns);
    const path = join(folder, 'groups.parquet');
    writeFileSync(path, Buffer.concat([encoder.add(rows), encoder.end()].map((bytes) => Buffer.from(bytes))));
    const found = await duck.rows(`FROM '${path}' ORDER BY second`);
    expect(found.map(Object.values)).toEqual(
      rows.map(([price, second, text]) => [price, BigInt(Number(second)), text]),
    );
    const groups = await duck.rows(
      `SELECT count(DISTINCT row_group_id) AS groups, min(compression) AS codec FROM parquet_metadata('${path}')`,
    );
    expect(groups).toEqual([{ groups: 3n, codec: 'SNAPPY' }]);
  });

  test('a file without rows is a table without rows', async () => {
    const { createParquet } = await import('./parquet.ts');
    const path = join(folder, 'empty.parquet');
    writeFileSync(path, createParquet([{ name: 'price', kind: 'decimal', read: () => null }]).end());
    expect(await duck.rows(`SELECT count(*) AS n FROM '${path}'`)).toEqual([{ n: 0n }]);
  });

  test('an export without reports has no file', async () => {
    const out = newFolder();
    const { code, stderr } = await run([wide, '--to', '1000', '--format', 'parquet', '--out', out]);
    expect([code, stderr, filesOf(out)]).toEqual([0, `0 reports of 1 stream in 0 files, ${out}.\n`, []]);
  });

  test.each([10n ** 38n, -(10n ** 38n), 2n ** 191n - 1n, -(2n ** 191n)])(
    '%d does not fit: the report is named, no file is left, and --raw and CSV have it exactly',
    async (price) => {
      const second = midnight + 100 + Number(price % 7n);
      const stream = streamOfSchema(2);
      await running.store.reports.append([report(stream, 2, second, 0, { price })]);
      const [parquet, raw] = [newFolder(), newFolder()];
      const span = [stream, '--from', `${second}`, '--to', `${second}`];
      const { code, stderr } = await run([...span, '--format', 'parquet', '--out', parquet]);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^error: The report of =V2,"x"\/USD observed at 2025-11-15T\S+ does not fit: price is -?\d+, /,
      );
      expect(filesOf(parquet)).toEqual([]);
      expect((await run([...span, '--format', 'parquet', '--raw', '--out', raw])).code).toBe(0);
      expect(await duck.rows(`SELECT price FROM '${join(raw, '*.parquet')}'`)).toEqual([{ price: `${price}` }]);
      const csv = await run([...span, '--format', 'csv', '--raw']);
      expect(csv.stdout.trim().split(',').at(-1)).toBe(`${price}`);
      const decimals = await run([...span, '--format', 'csv']);
      expect(decimals.stdout.trim().split(',').at(-1)).toMatch(/^-?\d{21,40}(\.\d{18})?$/);
    },
  );
});

describe('csv and ndjson', () => {
  test('DuckDB reads decimal text exactly when it is told the type, and names survive quotes and formulas', async () => {
    const { stdout } = await run([streamOfSchema(2), streamOfSchema(4), '--to', `${midnight + 50}`, '--format', 'csv']);
    const path = join(folder, 'two.csv');
    writeFileSync(path, stdout);
    expect(stdout.split('\n')[0]).toBe(
      'name,feedID,version,validFromTimestamp,validFromTimestampUTC,observationsTimestamp,observationsTimestampUTC,nativeFee,linkFee,expiresAt,expiresAtUTC,price,marketStatus',
    );
    const types = "types = {'price': 'DECIMAL(38,18)', 'nativeFee': 'DECIMAL(38,18)', 'linkFee': 'DECIMAL(38,18)'}";
    const rows = await duck.rows(`FROM read_csv('${path}', ${types})`);
    const both = [...(samples[1] ?? []), ...(samples[3] ?? [])];
    expect(rows.map(({ price, nativeFee, linkFee }) => [price, nativeFee, linkFee])).toEqual(
      both.map((expected_) => [expected(expected_).price, expected(expected_).nativeFee, expected(expected_).linkFee]),
    );
    expect(rows[0]?.name).toBe(`'=V2,"x"/USD`);
    expect(rows.map(({ marketStatus }) => marketStatus === null)).toEqual(both.map(({ body }) => body.version === 2));
    expect(rows.map(({ observationsTimestampUTC }) => observationsTimestampUTC)).toEqual(
      both.map((one) => expected(one).observationsTimestampUTC),
    );
  });

  test('decoded ndjson has the fields of its own schema, exact', async () => {
    const args = [fast, streamOfSchema(13), '--from', `${midnight}`, '--to', `${midnight + 50}`, '--decoded'];
    const lines = (await run(args)).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(lines[1]).toEqual({
      name: 'FAST/USD',
      feedID: fast,
      version: 3,
      validFromTimestamp: midnight + 5,
      validFromTimestampUTC: '2025-11-15T00:00:05.123Z',
      observationsTimestamp: midnight + 5,
      observationsTimestampUTC: '2025-11-15T00:00:05.123Z',
      nativeFee: '99999999999999999999.999999999999999999',
      linkFee: '97012.34567890123456789',
      expiresAt: midnight + 5 + 30 * 86_400,
      expiresAtUTC: '2025-12-15T00:00:05.123Z',
      price: '0',
      bid: '0.000000000000000001',
      ask: '-0.000000000000000001',
    });
    const [fine] = (await run(['V8/USD', '--decoded', '--from', `${midnight}`, '--to', `${midnight}`])).stdout.split(
      '\n',
    );
    expect(JSON.parse(fine ?? '')).toMatchObject({
      lastUpdateTimestamp: '1763200000123456789',
      lastUpdateTimestampUTC: '2025-11-15T09:46:40.123456Z',
      observationsTimestampUTC: '2025-11-15T00:00:00.000Z',
    });
    expect(lines[3]).toMatchObject({ name: 'V13/USD', bidVolume: '1', askVolume: '0' });
    const raw = (await run([...args, '--raw', '--full-report'])).stdout.split('\n')[1] ?? '';
    expect(JSON.parse(raw)).toMatchObject({ ask: '-1', fullReport: expect.stringMatching(/^0x/) });
  });

  test('signed ndjson is what the API sends, split by day in files as well', async () => {
    const out = newFolder();
    const { stdout } = await run([wide, '--to', `${midnight + 50}`]);
    await run([wide, '--to', `${midnight + 50}`, '--out', out]);
    const files = filesOf(out).toSorted();
    expect(files).toEqual(['V3-USD_2025-11-14.ndjson', 'V3-USD_2025-11-15.ndjson']);
    expect(files.map((name) => readFileSync(join(out, name), 'utf8')).join('')).toBe(stdout);
    expect(stdout.trim().split('\n')).toHaveLength(8);
  });

  test('no stream, --all with streams, parquet on stdout, and options without --decoded are rejected', async () => {
    for (const [args, text] of [
      [[], 'No stream is given'],
      [['--all', wide], '--all cannot'],
      [[wide, '--format', 'parquet'], '--format parquet needs --out'],
      [[wide, '--raw'], '--raw needs --decoded'],
      [[wide, '--full-report'], '--full-report needs --decoded'],
      [[wide, '--format', 'csv', '--json'], '--json cannot'],
      [[wide, '--format', 'xml'], '--format has the value "xml", expected ndjson, csv, parquet'],
      [[wide, '--out', ''], '--out is empty'],
      [[wide, '--out', join(running.folder, 'reports', 'data.mdb')], 'is a file, expected a folder'],
      [['NOPE/USD'], 'NOPE/USD'],
    ] as const) {
      const { code, stdout, stderr } = await run(args);
      expect([code, stdout, stderr], args.join(' ')).toEqual([2, '', expect.stringContaining(text)]);
    }
  });

  test('a stream of a later schema is an error by name; with --all it is skipped and the exit code is 1', async () => {
    const later = `0x0fff${'c'.repeat(60)}` as typeof wide;
    const path = mkdtempSync(join(tmpdir(), 'sealpost-later-'));
    const other = await openRunningIngest([testStream(later, { name: 'NEW/USD' })], signerSets, () => now * 1_000);
    try {
      const read = (...args: string[]) =>
        runCommand(['export', ...args, '--store', other.folder], { nowMs: now * 1_000 });
      expect(await read('NEW/USD', '--decoded')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('schema version 4095'),
      });
      expect(await read('--all', '--format', 'csv')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('was skipped'),
      });
      expect(await read('NEW/USD')).toEqual({ code: 0, stdout: '', stderr: '' });
    } finally {
      await other.close();
      rmSync(path, { recursive: true, force: true });
    }
  });
});

describe('folder', () => {
  const long = streamOfSchema(7);
  const days = 3;
  const perDay = 1_200; // more than a page
  const oldest = midnight - days * 86_400;
  const one = report(long, 7, oldest, 1);
  // The bytes are those of one report: signed export does not look into them, and signing thousands takes long.
  const copies = Array.from({ length: days * perDay }, (_, i) => {
    const ms = (oldest + Math.floor(i / perDay) * 86_400 + (i % perDay)) * 1_000;
    return { ...one, validFromMs: ms, observationsMs: ms };
  });
  const args = (out: string): readonly string[] => ['V7/USD', '--to', `${midnight - 10}`, '--out', out];
  const contents = (out: string): string =>
    filesOf(out)
      .toSorted()
      .map((name) => readFileSync(join(out, name), 'utf8'))
      .join('');
  let whole: string;

  beforeAll(async () => {
    await running.store.reports.append(copies);
    whole = (await run(['V7/USD', '--to', `${midnight - 10}`])).stdout;
  });

  /** A signal that is aborted when it has been looked at so often. */
  const abortAfter = (looks: number): AbortSignal => {
    const controller = new AbortController();
    let seen = 0;
    return Object.create(controller.signal, {
      aborted: {
        get: () => {
          seen += 1;
          if (seen === looks) controller.abort('SIGINT');
          return controller.signal.aborted;
        },
      },
      reason: { get: () => controller.signal.reason },
    });
  };

  test.each([1, 2, 4, 6, 8])('interrupted at look %i and run again, it has no duplicates or holes', async (looks) => {
    const out = newFolder();
    const first = await run(args(out), { interruption: abortAfter(looks) });
    expect([first.code, first.stderr]).toEqual([130, 'error: Interrupted. Run the command again to resume.\n']);
    expect(readdirSync(out).filter((name) => name.includes('partial'))).toEqual([]);
    const before = filesOf(out).length;
    const second = await run(args(out));
    expect(second.stderr).toMatch(
      new RegExp(`^Resuming the export in ${out}\\.\n[\\d,]+ reports of 1 stream in ${days - before} files?, `),
    );
    expect(contents(out) === whole).toBe(true);
    expect(filesOf(out)).toHaveLength(days);
  });

  test('an export with other arguments is rejected, each by name; a folder with other files too', async () => {
    const out = newFolder();
    await run(args(out));
    const changed = (...more: string[]) => run([...args(out).filter((_, i) => i > 0), ...more]);
    for (const [given, text] of [
      [['V7/USD', '--format', 'csv'], '--format was ndjson, now it is csv'],
      [['V7/USD', '--decoded'], '--decoded was not set, now it is set'],
      [['V7/USD', '--from', '1'], '--from was not set, now it is 1'],
      [['V8/USD'], 'streams was V7/USD, now it is V8/USD'],
      [['--all'], 'streams was V7/USD, now it is all streams'],
    ] as const)
      expect(await changed(...given), given.join(' ')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(text),
      });
    expect(contents(out) === whole).toBe(true);
    const foreign = newFolder();
    await run([wide, '--to', '5', '--out', foreign]);
    rmSync(join(foreign, '_sealpost-export.log'));
    writeFileSync(join(foreign, 'thesis.txt'), 'mine');
    expect(await run([wide, '--out', foreign])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is not empty'),
    });
    expect(readdirSync(foreign)).toEqual(['thesis.txt']);
  });

  test('a file that is missing or was cut is written again, and a cut log counts up to its last whole line', async () => {
    const out = newFolder();
    await run(args(out));
    const [first, second] = filesOf(out).toSorted();
    rmSync(join(out, second ?? ''));
    expect((await run(args(out))).stderr).toContain(`in ${days - 1} files`);
    truncateSync(join(out, first ?? ''), 10);
    await run(args(out));
    expect(contents(out) === whole).toBe(true);
    const log = join(out, '_sealpost-export.log');
    truncateSync(log, readFileSync(log).length - 25);
    await run(args(out));
    expect(contents(out) === whole).toBe(true);
    writeFileSync(log, 'not a log\n');
    expect(await run(args(out))).toMatchObject({ code: 1, stderr: expect.stringContaining('is not JSON') });
  });

  test('run again after it was complete, it adds newer reports and leaves complete days alone', async () => {
    const out = newFolder();
    const stream = streamOfSchema(9);
    const read = (nowSeconds: number) => run(['V9/USD', '--out', out], { nowMs: nowSeconds * 1_000 });
    await read(midnight);
    expect(filesOf(out)).toEqual(['V9-USD_2025-11-14.ndjson', 'V9-USD_2025-11-15.ndjson']);
    expect(contents(out).split('\n')).toHaveLength(3 + 1); // up to midnight, and the end
    await read(midnight + 7_200);
    expect(contents(out).split('\n')).toHaveLength(8 + 1);
    await running.store.reports.append([report(stream, 9, now - 5, 3)]);
    expect((await read(now)).stderr).toContain('in 2 files'); // the day that was not over, and the new one
    expect(contents(out).split('\n')).toHaveLength(9 + 1);
    expect((await read(now + 2 * 86_400)).stderr).toContain('in 1 file,');
    expect((await read(now + 2 * 86_400)).stderr).toContain('0 reports of 1 stream in 0 files');
  });

  test('a renamed stream is continued under its first name', async () => {
    const out = newFolder();
    const stream = streamOfSchema(10);
    const csv = ['V10/USD', '--format', 'csv', '--out', out];
    expect((await run(csv, { interruption: abortAfter(1) })).code).toBe(130);
    const rename = (name: string) =>
      running.store.admin.update('stream', [stream], () => [testStream(stream, { name })], act);
    await rename('RENAMED/USD');
    try {
      expect((await run(csv)).code).toBe(0);
      expect(filesOf(out)).toEqual(['V10-USD_2025-11-14.csv', 'V10-USD_2025-11-15.csv']);
      expect(contents(out)).not.toContain('RENAMED');
    } finally {
      await rename('V10/USD');
    }
  });

  test('a second export into a folder is rejected while one runs; the lock of a dead one is not', async () => {
    const out = newFolder();
    await run([wide, '--to', '5', '--out', out]);
    const lock = join(out, '_sealpost-export.lock');
    expect(existsSync(lock)).toBe(false);
    const { hostname } = await import('node:os');
    writeFileSync(lock, JSON.stringify({ pid: process.ppid, host: hostname(), token: 'x' }));
    expect(await run([wide, '--to', '5', '--out', out])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`is running: process ${process.ppid}`),
    });
    writeFileSync(lock, JSON.stringify({ pid: 2 ** 22 + 1, host: hostname(), token: 'x' }));
    expect((await run([wide, '--to', '5', '--out', out])).code).toBe(0);
    expect(existsSync(lock)).toBe(false);
  });

  test('retention that deletes between two runs loses no exported report', async () => {
    const stream = streamOfSchema(12);
    const other = await openRunningIngest([testStream(stream, { name: 'V12/USD' })], signerSets, () => now * 1_000);
    const out = newFolder();
    const read = (nowSeconds: number) =>
      runCommand(['export', 'V12/USD', '--out', out, '--store', other.folder], { nowMs: nowSeconds * 1_000 });
    try {
      const one = report(stream, 12, midnight, 0);
      const at = (second: number) => ({ ...one, validFromMs: second * 1_000, observationsMs: second * 1_000 });
      await other.store.reports.append(Array.from({ length: 400 }, (_, i) => at(midnight + i)));
      await other.store.reports.append([at(midnight + 86_400)]);
      expect((await read(midnight + 250)).code).toBe(0);
      const before = contents(out);
      while ((await other.store.reports.trim({ beforeMs: (midnight + 200) * 1_000, bytesMax: 1e12 })).more);
      const { code, stderr } = await read(midnight + 86_500);
      expect([code, stderr]).toEqual([
        1,
        `error: The source has lost reports of V12-USD_2025-11-15.ndjson since it was written. It is kept as it was, without later reports of that day.\n1 report of 1 stream in 1 file, ${out}.\n`,
      ]);
      expect(contents(out).startsWith(before)).toBe(true);
      expect((await read(midnight + 86_500 + 7_200)).code).toBe(0);
    } finally {
      await other.close();
    }
  });

  test('while reports are written, an export has a whole stretch of them', async () => {
    const stream = streamOfSchema(6);
    const out = newFolder();
    const added = Array.from({ length: 90 }, (_, i) => report(stream, 6, midnight + 1_000 + i, i));
    const writing = (async () => {
      for (let i = 0; i < added.length; i += 30) await running.store.reports.append(added.slice(i, i + 30));
    })();
    const [{ code }] = await Promise.all([run(['V6/USD', '--out', out]), writing]);
    const seconds = contents(out)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).observationsTimestamp as number)
      .filter((second) => second >= midnight + 1_000);
    expect([code, seconds]).toEqual([0, seconds.map((_, i) => midnight + 1_000 + i)]);
  });
});
