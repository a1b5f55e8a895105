import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Environment, openEnvironment, openTable, type Table } from './environment.ts';

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

test('table: a record belongs to its reader, whatever is read after it, compressed or not', () => {
  const packed = openTable(environment, 'runs', true);
  const long = Buffer.alloc(100_000, 0xff);
  environment.root.transactionSync(() => {
    packed.put(keys.short, short);
    packed.put(keys.long, long);
  });
  for (const one of [table, packed]) {
    const [first, again] = [one.get(keys.short), one.get(keys.long)];
    expect(one.get(keys.short)?.equals(short)).toBe(true);
    expect([first?.equals(short), again?.equals(long)]).toEqual([true, true]);
    expect(first?.buffer.byteLength).toBeLessThan(65_536);
    expect([...one.getRange()].filter(({ value }) => value.equals(short))).toHaveLength(1);
    expect(one.view(keys.long)?.equals(long)).toBe(true);
    const view = one.view(keys.short); // from here on as long as the record, whichever way it is read
    expect([view?.toString(), view?.subarray(4).toString(), crc32(view ?? '')]).toEqual([
      'one record',
      'record',
      crc32(short),
    ]);
  }
  expect(table.get(keys.empty)?.length).toBe(0);
  expect(table.get(Buffer.from('missing'))).toBeUndefined();
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
