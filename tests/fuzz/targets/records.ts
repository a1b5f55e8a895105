// Records of every table of the embedded engine, and rows of PostgreSQL: a real store is filled and its records are mutated. An input is the number of a
// record, how many bytes its key has, key and value; some are given a right checksum again, as by chance or by an attacker on the disk.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { createDamageLog } from '../../../server/src/store/damage.ts';
import { encodeRun, openRun } from '../../../server/src/store/format/report-run.ts';
import { adminDecoders, recordChecks } from '../../../server/src/store/lmdb/check.ts';
import { openEnvironment, openTable } from '../../../server/src/store/lmdb/environment.ts';
import { openStore } from '../../../server/src/store/open.ts';
import { decodeReport, encodeKeys, encodeReport, readBatch } from '../../../server/src/store/postgres/rows.ts';
import { CorruptRecordError } from '../../../server/src/store/store.ts';
import { act, registerSigners, testStream } from '../../support/running-ingest.ts';
import { createSignedReports, millisecondStream, secondStream } from '../../support/signed-reports.ts';
import { outcomeOf, requireSame, type Target } from '../target.ts';

type Entry = { readonly key: Buffer; readonly value: Buffer };
type Kind = {
  readonly table: string;
  /** Throws, or returns what a record holds. */
  readonly decode: (entry: Entry) => unknown;
};

const start = 1_763_200_000;
const streams = [secondStream(1), secondStream(2), millisecondStream(3)];

/** Every report of a run, decoded; written again, it is the same record. */
const decodeRun = ({ key, value }: Entry): unknown => {
  const readAll = (bytes: Buffer) => {
    const run = openRun(key, bytes);
    return Array.from({ length: run.count }, (_, i) => ({ ...run.window(i), fullReport: run.fullReport(i) }));
  };
  const reports = readAll(value);
  requireSame(readAll(encodeRun(key, reports)), reports, 'a run written again is another one');
  return reports;
};

const postgresRow = { valid_from: start * 1_000, observations: (start + 9) * 1_000 };

const kinds: readonly Kind[] = [
  { table: 'runs', decode: decodeRun },
  ...Object.entries(recordChecks).map(([table, check]) => ({
    table,
    decode: ({ key, value }: Entry) => check(key, value),
  })),
  ...Object.entries(adminDecoders).map(([table, decode]) => ({ table: `admin ${table}`, decode })),
  {
    table: 'postgres reports',
    decode: ({ value }) => decodeReport(streams[0] as never, { ...postgresRow, record: value }),
  },
  {
    table: 'postgres appended',
    decode: ({ value }) =>
      readBatch(createDamageLog(), { first_position: 1, last_position: 2, keys: value }) ??
      assert.fail(new CorruptRecordError('a batch')),
  },
];

const encode = (kind: number, { key, value }: Entry, seal = 0): Buffer =>
  Buffer.concat([Uint8Array.of(kind, seal, key.length), key, value]);

/** Fills a store with something in every table, and reads its records. */
const readRealRecords = async (): Promise<readonly Buffer[]> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-fuzz-records-'));
  try {
    const { report, signerSets } = await createSignedReports('fuzz');
    const store = await openStore(folder, 'write');
    await registerSigners(store, signerSets);
    await store.admin.update('stream', streams, () => streams.map((feedId) => testStream(feedId)), act);
    const account = {
      userId: 'ba2d3a9e-7c1f-4a53-9d0c-0f4f6f2f6a11',
      name: 'one',
      createdAt: '2026-01-01T00:00:00.000000Z',
      disabledAt: null,
      secrets: [],
      entitlements: ['public'],
      rateLimits: {},
    };
    await store.admin.update('account', [account.userId], () => [account], act);
    for (const feedId of streams) {
      const unit = feedId.startsWith('0x1') ? 1_000 : 1;
      const reports = Array.from({ length: 130 }, (_, i) =>
        report(feedId, (start + i) * unit, (start + i) * unit + unit - 1),
      );
      await store.reports.append(reports.map((one) => ({ ...one, price: 10n ** 18n })));
    }
    const refused = { atMs: start * 1_000, code: 'unknown_stream', message: '', feedId: null, observationsMs: null };
    await store.quarantine.add([{ ...refused, line: 'a' }]);
    const { userId } = account;
    await store.usage.add(
      [{ userId, day: '2026-01-01', route: 'reportLatest', requests: 7 }],
      [{ userId, secretId: 'one', usedAtMs: start * 1_000 }],
      start * 1_000,
    );
    await store.retention.update(() => ({ days: 30, bytes: null }));
    await store.close();
    const records: Buffer[] = [];
    for (const [name, prefix] of [
      ['reports', ''],
      ['admin', 'admin '],
    ] as const) {
      const environment = openEnvironment(join(folder, name), false);
      for (const [index, { table }] of kinds.entries()) {
        if (table.startsWith('postgres') || table.startsWith('admin ') !== (prefix !== '')) continue;
        for (const entry of openTable(environment, table.slice(prefix.length), table === 'runs').getRange({ limit: 3 }))
          records.push(encode(index, { key: Buffer.from(entry.key), value: Buffer.from(entry.value) }));
      }
      await environment.root.close();
    }
    const rows = [report(secondStream(1), start, start + 9), report(secondStream(2), start, start + 9)];
    const at = (table: string): number => kinds.findIndex((kind) => kind.table === table);
    records.push(encode(at('postgres reports'), { key: Buffer.alloc(0), value: encodeReport(rows[0] as never) }));
    records.push(encode(at('postgres appended'), { key: Buffer.alloc(0), value: encodeKeys(rows) }));
    return records;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Ways to make the checksum at the beginning of a value right again: over the rest, with each seed that tables use. */
const seal = ({ key, value }: Entry, way: number): Buffer => {
  const sealed = Buffer.from(value);
  if (sealed.length < 6) return sealed;
  const stream = key.length >= 4 ? key.readUInt32BE(0) : 0;
  if (way === 1) sealed.writeUInt32BE(crc32(sealed.subarray(4), crc32(key)), 0);
  else if (way === 2) sealed.writeUInt32BE(crc32(sealed.subarray(4), stream), 0);
  else if (way === 3) sealed.writeUInt32BE(crc32(sealed.subarray(4, 6 + 20 * sealed.readUInt16BE(4)), crc32(key)), 0);
  else if (way === 4) sealed.writeUInt32BE(crc32(sealed.subarray(4)), 0);
  return sealed;
};

const ways = 5;

export const openRecords = async (): Promise<Target> => {
  const real = await readRealRecords();
  const found = new Set(real.map((record) => record[0]));
  for (const [index, { table }] of kinds.entries())
    assert.ok(found.has(index) || table === 'admin writer', `the store has no record of ${table}`);
  const run = (input: Buffer): string => {
    if (input.length < 3) return 'short';
    const { table, decode } = kinds[(input[0] as number) % kinds.length] as Kind;
    const way = (input[1] as number) % ways;
    const keyEnd = 3 + (input[2] as number);
    const entry = { key: Buffer.from(input.subarray(3, keyEnd)), value: Buffer.from(input.subarray(keyEnd)) };
    const sealed = { ...entry, value: seal(entry, way) };
    const before = Buffer.from(sealed.value);
    const read = outcomeOf(() => decode(sealed), [CorruptRecordError]);
    assert.ok(sealed.value.equals(before), 'decoding changed the record');
    if ('value' in read) return `${table} accepted ${way}`;
    return `${table} ${way} ${read.error.message.replace(/[0-9a-f]*\d[0-9a-f]*/g, 'N').replace(/^.*(?= does not| is not| holds| has a)/s, '')}`;
  };
  const seeds = real.flatMap((record) =>
    Array.from({ length: ways }, (_, way) =>
      Buffer.concat([record.subarray(0, 1), Uint8Array.of(way), record.subarray(2)]),
    ),
  );
  return {
    seeds,
    run,
    words: ['{', '}', '"', 'null', '[]', '\u00ff\u00ff\u00ff\u00ff'],
    inputBytesMax: 32_768,
  };
};
