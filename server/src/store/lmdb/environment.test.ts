import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RecordBytes } from '../format/record-bytes.ts';
import { type Environment, openEnvironment, openTable, type Table, viewRecord } from './environment.ts';

let folder: string;
let environment: Environment;
let table: Table;
const keys = { short: Buffer.from('short'), long: Buffer.from('long'), empty: Buffer.from('empty') };
const short = Buffer.from('one record');

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-environment-'));
  environment = openEnvironment(folder, false);
  table = openTable(environment, 'records');
  environment.root.transactionSync(() => {
    table.put(keys.short, short);
    table.put(keys.long, Buffer.alloc(100_000, 0xff));
    table.put(keys.empty, Buffer.alloc(0));
  });
});
afterAll(async () => {
  await environment.root.close();
  rmSync(folder, { recursive: true });
});

/** A view of a record, after a longer one was read into the same memory. */
const viewAfterLonger = (key: Buffer): RecordBytes => {
  expect(viewRecord(table, keys.long)?.length).toBe(100_000);
  return viewRecord(table, key) as RecordBytes; // written above
};

/** What follows a record in lmdb's read buffer must not be in reach, whichever way the bytes are read. */
const waysToRead: Readonly<Record<string, (bytes: Buffer) => Uint8Array | string | number>> = {
  'Buffer.subarray without an end': (bytes) => bytes.subarray(0),
  'Uint8Array.subarray without an end': (bytes) => Uint8Array.prototype.subarray.call(bytes, 0),
  'slice without an end': (bytes) => Uint8Array.prototype.slice.call(bytes, 0),
  'toString without an end': (bytes) => bytes.toString('latin1'),
  'a copy': (bytes) => Buffer.from(bytes),
  'a concatenation': (bytes) => Buffer.concat([bytes]),
  'a text decoder': (bytes) => new TextDecoder().decode(bytes),
  'the checksum, in native code': (bytes) => crc32(bytes),
  'the length of its memory': (bytes) => bytes.byteLength,
  'set into a larger array': (bytes) => {
    const target = new Uint8Array(20);
    target.set(bytes);
    return target;
  },
  'its last bytes, counted from the end': (bytes) => bytes.subarray(-3),
  'a search past its end': (bytes) => bytes.indexOf(0xff),
};

/** Short enough to be printed when it is 16 MB too long. */
const summarize = (result: Uint8Array | string | number): string => {
  if (typeof result === 'number') return String(result);
  if (typeof result === 'string') return `${result.length} characters: ${result.slice(0, 20)}`;
  return `${result.byteLength} bytes: ${Buffer.from(result.buffer, result.byteOffset, Math.min(20, result.byteLength)).toString('hex')}`;
};

test.each(Object.keys(waysToRead))('view: a record ends where it was written to end, by %s', (way) => {
  const read = waysToRead[way] as (typeof waysToRead)[string]; // one of its own names
  const view = viewAfterLonger(keys.short) as unknown as Buffer; // what careless code would take it for
  expect(summarize(read(view))).toBe(summarize(read(short)));
});

test('view: an empty record has no bytes, and a missing one is undefined', () => {
  expect(viewAfterLonger(keys.empty).length).toBe(0);
  expect(crc32(viewAfterLonger(keys.empty).subarray(0, 10))).toBe(crc32(''));
  expect(viewRecord(table, Buffer.from('missing'))).toBeUndefined();
});

test('view: a record larger than the read buffer of lmdb is read whole', () => {
  const large = Buffer.alloc(17 * 2 ** 20, 'x');
  environment.root.transactionSync(() => table.put(Buffer.from('large'), large));
  const view = viewRecord(table, Buffer.from('large')) as RecordBytes; // just written
  expect(view.length).toBe(large.length);
  expect(crc32(view.subarray(0, view.length))).toBe(crc32(large));
  expect(table.get(Buffer.from('large'))?.equals(large)).toBe(true);
  expect([...table.getRange()].map(({ value }) => value.length)).toEqual([0, large.length, 100_000, 10]);
});

test('view: its type is not assignable to Buffer', () => {
  const view = viewAfterLonger(keys.short);
  const takesBuffer = (bytes: Uint8Array): number => bytes.length;
  // @ts-expect-error a view is no Uint8Array
  expect(takesBuffer(view)).toBe(10);
  // @ts-expect-error nor does the checksum take one
  expect(crc32(view)).toBe(crc32(short));
  // @ts-expect-error a range has two ends
  expect(view.subarray(4).length).toBe(6);
  // @ts-expect-error so has a text
  expect(view.toString('latin1', 4)).toBe('record');
});

test('table: lmdb’s asynchronous and shared-buffer calls are not available', () => {
  for (const name of ['getBinaryFast', 'transaction', 'putSync', 'ifVersion', 'committed', 'flushed'])
    expect([name in table, name in environment.root]).toEqual([false, false]);
  expect(() => table.put(keys.short, short)).toThrow('outside of a transaction');
  expect(() => table.remove(keys.short)).toThrow('outside of a transaction');
});

test('replaced: an older file that is copied over the open one ends writing', async () => {
  const [home, backup] = [
    mkdtempSync(join(tmpdir(), 'sealpost-copied-')),
    mkdtempSync(join(tmpdir(), 'sealpost-older-')),
  ];
  const { root, ...opened } = openEnvironment(home, false);
  const records = openTable({ root, ...opened }, 'records');
  const put = () => root.transactionSync(() => records.put(keys.short, short));
  put();
  await root.backup(backup, true);
  for (let done = 0; done < 3; done += 1) put();
  writeFileSync(join(home, 'data.mdb'), readFileSync(join(backup, 'data.mdb'))); // the same inode
  expect(put).toThrow(expect.objectContaining({ code: 'store_replaced' }));
  expect(put).toThrow(expect.objectContaining({ code: 'store_replaced' }));
  await root.close();
  for (const folder of [home, backup]) rmSync(folder, { recursive: true });
});
