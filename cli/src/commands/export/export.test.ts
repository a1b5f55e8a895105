import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParquetEncoder } from '@sealpost/client/export';
import { type Field, reportSchemas } from '@sealpost/protocol';
import * as library from 'hyparquet-writer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type DuckDb, openDuckDb } from '../../../../tests/support/exports/duckdb.ts';
import { type SchemaReport, schemaVersions, streamOfSchema } from '../../../../tests/support/exports/schema-reports.ts';
import { openRunningIngest, testStream } from '../../../../tests/support/running-ingest.ts';
import { runCommand } from '../../sample-session.fixture.ts';
import {
  fast,
  fastSample,
  filesOf,
  midnight,
  nameOf,
  now,
  oddName,
  openExportSample,
  report,
  samples,
  signerSets,
  wide,
} from './export-sample.fixture.ts';

const { folder, running, run, newFolder, close } = await openExportSample();
let duck: DuckDb;
beforeAll(async () => {
  duck = await openDuckDb();
});
afterAll(async () => {
  duck.close();
  await close();
});

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
      cells[name] = name.endsWith('Volume') && unit === 'count' ? BigInt(raw) * 10n ** 18n : BigInt(raw);
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
    expect([code, stderr]).toEqual([0, `115 reports of 15 streams in 29 files, ${out}.\n`]);
    expect(filesOf(out)).toContain('V3-USD_2025-11-14.parquet');
    expect(filesOf(out)).toContain('V2-x-USD_2025-11-15.parquet');
    for (const [i, version] of schemaVersions.entries()) {
      const files = join(out, version === 2 ? 'V2-x-*.parquet' : `V${version}-*.parquet`);
      const rows = await duck.rows(`FROM '${files}' ORDER BY observationsTimestamp`);
      const name = nameOf(version);
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
      { n: 115n, volumes: 16n },
    ]);
    const [row] = await duck.rows(
      `SELECT fullReport FROM ${all} WHERE name = 'V13/USD' AND observationsTimestamp = ${midnight}`,
    );
    expect(row?.fullReport).toBe(`0x${Buffer.from(samples[12]?.[2]?.fullReport ?? []).toString('hex')}`);
  });

  test('filters that skip row groups by their statistics find what a full scan finds', async () => {
    const out = newFolder();
    await run(['--all', '--to', `${midnight + 50}`, '--format', 'parquet', '--out', out]);
    const files = `read_parquet('${join(out, 'V11-*.parquet')}', union_by_name = true)`;
    for (const filter of [
      'lastSeenTimestampNs >= 9223372036854775808',
      'lastSeenTimestampNs = 18446744073709551615',
      'bid < 0',
      'bid = 99999999999999999999.999999999999999999',
      'ask <= -99999999999999999999.999999999999999999',
      'mid BETWEEN -1 AND 0',
      "observationsTimestampUTC >= TIMESTAMPTZ '2025-11-15 00:00:00Z'",
      'observationsTimestamp < 1763164800',
      'marketStatus = 4294967295',
      "name = 'V11/USD'",
      `feedID = '${streamOfSchema(11)}'`,
    ]) {
      const [pushed] = await duck.rows(`SELECT count(*) AS n FROM ${files} WHERE ${filter}`);
      const [scanned] = await duck.rows(`SELECT count(*) FILTER (${filter}) AS n FROM ${files}`);
      expect([pushed?.n, Number(pushed?.n) > 0], filter).toEqual([scanned?.n, true]);
    }
  });

  test('several compressed row groups hold what one would', async () => {
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
    const encoder = createParquetEncoder(library, columns);
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
    const path = join(folder, 'empty.parquet');
    writeFileSync(path, createParquetEncoder(library, [{ name: 'price', kind: 'decimal', read: () => null }]).end());
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
      const parquet = newFolder();
      const span = [stream, '--from', `${second}`, '--to', `${second}`];
      const { code, stderr } = await run([...span, '--format', 'parquet', '--out', parquet]);
      expect(code).toBe(1);
      expect(stderr).toMatch(
        /^error: The report of =V2,"x"\/USD observed at 2025-11-15T\S+ does not fit: price is -?\d+, /,
      );
      expect(filesOf(parquet)).toEqual([]);
      expect((await run([...span, '--format', 'parquet', '--raw', '--out', parquet])).code).toBe(0);
      expect(await duck.rows(`SELECT price FROM '${join(parquet, '*.parquet')}'`)).toEqual([{ price: `${price}` }]);
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
    expect(rows[0]?.name).toBe(`'${oddName}`);
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
      const unread = ['export', '--all', '--format', 'csv', '--store', other.folder];
      expect((await runCommand(unread, { nowMs: now * 1_000, isUnread: true })).code).toBe(1);
      expect(await read('NEW/USD')).toEqual({ code: 0, stdout: '', stderr: '' });
    } finally {
      await other.close();
      rmSync(path, { recursive: true, force: true });
    }
  });
});
