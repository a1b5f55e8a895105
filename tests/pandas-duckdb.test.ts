// The queries of docs/data.md, run by DuckDB on files that the documented command wrote.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../cli/src/sample-session.fixture.ts';
import { type DuckDb, openDuckDb } from './support/exports/duckdb.ts';
import { createSchemaReports, streamOfSchema } from './support/exports/schema-reports.ts';
import { openRunningIngest, type RunningIngest, testStream } from './support/running-ingest.ts';
import { readText } from './support/source-tree.ts';

const folder = mkdtempSync(join(tmpdir(), 'sealpost-data-'));
const document = readText('docs/data.md');
const queries = [...document.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) =>
  (sql as string).replaceAll('./prices', join(folder, 'prices')),
);
const start = 1_763_164_800; // 2025-11-15
const one = 10n ** 18n;
const [eth, btc] = [streamOfSchema(2), streamOfSchema(4)];
let duck: DuckDb;
let running: RunningIngest;

beforeAll(async () => {
  const { report, signerSets } = await createSchemaReports();
  const streams = [
    testStream(eth, { name: 'ETH/USD-Streams-CexPrice' }),
    testStream(btc, { name: 'BTC/USD-Streams-CexPrice' }),
  ];
  running = await openRunningIngest(streams, signerSets, () => Date.now());
  await running.store.reports.append([
    ...[3_000n, 3_100n, 2_900n, 3_050n].map((price, i) =>
      report(eth, 2, start + 200 * i, i, { price: price * one + 1n }),
    ),
    ...[100_000n, 101_000n].map((price, i) => report(btc, 4, start + 300 * i, i, { price: price * one })),
  ]);
  duck = await openDuckDb();
});
afterAll(async () => {
  duck.close();
  await running.close();
  rmSync(folder, { recursive: true, force: true });
});

test('data.md: every query gives what the reports say, and the columns are those that it lists', async () => {
  const command = /^sealpost (.+)$/m.exec(document)?.[1]?.replace('./prices', join(folder, 'prices')).split(' ') ?? [];
  expect((await runCommand([...command, '--store', running.folder])).code).toBe(0);
  const csv = await runCommand(['export', '--all', '--format', 'csv', '--store', running.folder]);
  writeFileSync(join(folder, 'prices.csv'), csv.stdout);
  expect(queries).toHaveLength(5);
  const [newest = [], streams = [], candles = [], quotients = [], exact = []] = await Promise.all(
    queries.map(duck.rows),
  );
  expect(newest.map(({ price }) => price)).toEqual([3_050n, 2_900n, 3_100n, 3_000n].map((price) => price * one + 1n));
  expect(streams.map(({ name, reports }) => [name, reports])).toEqual([
    ['BTC/USD-Streams-CexPrice', 2n],
    ['ETH/USD-Streams-CexPrice', 4n],
  ]);
  expect(candles.map(({ open, high, low, close, reports }) => [open, high, low, close, reports])).toEqual([
    [3_000n * one + 1n, 3_100n * one + 1n, 3_000n * one + 1n, 3_100n * one + 1n, 2n],
    [2_900n * one + 1n, 2_900n * one + 1n, 2_900n * one + 1n, 2_900n * one + 1n, 1n],
    [3_050n * one + 1n, 3_050n * one + 1n, 3_050n * one + 1n, 3_050n * one + 1n, 1n],
  ]);
  expect(quotients.map(({ eth_in_btc: quotient }) => quotient)).toEqual([
    0.03,
    0.031,
    2_900 / 101_000,
    3_050 / 101_000,
  ]);
  expect(exact.map(({ price }) => price)).toContain(3_000n * one + 1n);
  expect(exact).toHaveLength(6);

  const types = await duck.types(`FROM '${join(folder, 'prices', 'BTC-USD-*.parquet')}'`);
  const named = [...document.matchAll(/^\| (.+?) +\| /gm)].flatMap(([, cell]) => [
    ...(cell as string).matchAll(/`(\w+)`/g),
  ]);
  const known = new Set(named.map(([, name]) => name));
  expect(Object.keys(types).filter((name) => !known.has(name) && name !== 'linkFee')).toEqual([]);
});
