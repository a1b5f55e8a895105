import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { expect, test } from 'vitest';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { openStore } from '../open.ts';
import { testStoreContract } from '../store.contract.ts';
import { openEnvironment, openTable } from './environment.ts';

testStoreContract('lmdb', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-'));
  return {
    writers: 'one',
    open: (mode) => openStore(`lmdb:${folder}`, mode),
    remove: async () => rmSync(folder, { recursive: true, force: true }),
  };
});

/** Opens a store after a part of it was changed; the folder is removed. */
const openAfter = async (mode: 'read' | 'write', change: (folder: string) => void): Promise<string> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-'));
  try {
    await (await openStore(folder, 'write')).close();
    change(folder);
    const opened = await openStore(folder, mode).catch((error: Error) => error.message.replace(folder, 'FOLDER'));
    if (typeof opened === 'string') return opened;
    await opened.close();
    return 'opened';
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

test.each(['read', 'write'] as const)(
  'lmdb: a store without the file of its administration is refused to those that %s, not continued with an empty one',
  async (mode) => {
    const found = await openAfter(mode, (folder) => {
      rmSync(join(folder, 'admin/data.mdb'));
      expect(existsSync(join(folder, 'reports/data.mdb'))).toBe(true);
    });
    expect(found).toBe(
      'The store in FOLDER/admin is damaged: its file data.mdb is missing. Restore a backup with: sealpost store restore.',
    );
  },
);

// As without permission for the folder, which root always has: a file that cannot be looked for is not missing.
test.each(['admin', 'reports'])(
  'lmdb: a store whose %s cannot be looked into is not taken for a missing one',
  async (part) => {
    const found = await openAfter('read', (folder) => {
      rmSync(join(folder, part), { recursive: true });
      symlinkSync(part, join(folder, part));
    });
    expect(found).toMatch(`The store in FOLDER/${part} cannot be opened: ELOOP: `);
  },
);

// The file is as a typing error has it, the link as a disk that is not mounted.
test.each([
  ['a file', (path: string) => writeFileSync(path, '')],
  ['a link that leads nowhere', (path: string) => symlinkSync('not-mounted', path)],
])('lmdb: %s in place of the folder of a store is named, and no backup is advised', async (_, put) => {
  const path = join(mkdtempSync(join(tmpdir(), 'sealpost-store-')), 'store');
  try {
    put(path);
    await expect(openStore(path, 'write')).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(
        /^The store in .* cannot be opened: .* A folder is expected there\. Check the path, and that a disk that it leads to is mounted\.$/,
      ),
    });
  } finally {
    rmSync(dirname(path), { recursive: true, force: true });
  }
});

test.each(['admin', 'reports'])('lmdb: a folder in place of the lock of %s is an error, not a crash', async (part) => {
  const found = await openAfter('write', (folder) => {
    rmSync(join(folder, part, 'lock.mdb'));
    mkdirSync(join(folder, part, 'lock.mdb'));
  });
  expect(found).toBe(
    `The store in FOLDER/${part} is damaged: its lock.mdb is a folder. Restore a backup with: sealpost store restore.`,
  );
});

test('lmdb: a store without its locks is opened', async () => {
  const found = await openAfter('read', (folder) => {
    for (const part of ['admin', 'reports']) rmSync(join(folder, part, 'lock.mdb'));
  });
  expect(found).toBe('opened');
});

test.each([
  ['older', 3, 'Open it with the release that wrote it, or start with a new folder'],
  ['newer', 5, 'Upgrade sealpost.'],
])('lmdb: a store of %s format is refused, with what to do', async (age, format, advice) => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-'));
  try {
    await (await openStore(folder, 'write')).close();
    const environment = openEnvironment(join(folder, 'reports'), false);
    const value = Buffer.from([format, 0, 0, 0, 0]);
    value.writeUInt32BE(crc32(value.subarray(0, 1)), 1);
    environment.root.transactionSync(() => openTable(environment, 'meta').put(Buffer.from('format'), value));
    await environment.root.close();
    for (const mode of ['read', 'write'] as const)
      await expect(openStore(folder, mode)).rejects.toMatchObject({
        code: `store_format_${age}`,
        message: expect.stringContaining(`has format ${format}; this release reads format 4. ${advice}`),
      });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('lmdb: while a page of a second with 1,000 reports is read, others get their turn', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-store-'));
  const store = await openStore(folder, 'write');
  try {
    const { report } = await createSignedReports();
    const [feedId, second] = [secondStream(1), 1_763_200_000];
    const one = report(feedId, second, second);
    const batch = Array.from({ length: 1_500 }, (_, i) => {
      const ms = second * 1_000 + i;
      return { ...one, validFromMs: ms, observationsMs: ms };
    });
    await store.reports.append(batch);
    const momentsOf = async (from: number, limit: number) => {
      const { reports, more } = await store.reports.page(feedId, from, limit);
      return { moments: reports.map(({ observationsMs }) => observationsMs - second * 1_000), more };
    };
    const upTo = (from: number, end: number) => Array.from({ length: end - from }, (_, i) => from + i);
    let turns = 0;
    const count = (): void => {
      turns += 1;
      timer = setImmediate(count);
    };
    let timer = setImmediate(count);
    const whole = await momentsOf(second, 1_000);
    clearImmediate(timer);
    expect(turns).toBeGreaterThanOrEqual(4);
    expect(whole).toEqual({ moments: upTo(0, 1_000), more: true });
    // Pieces that end where the page does, before it, and after it; a page ends on a whole second.
    expect(await momentsOf(second, 250)).toEqual({ moments: upTo(0, 250), more: true });
    expect(await momentsOf(second, 1_200)).toEqual({ moments: upTo(0, 1_000), more: true });
    expect(await momentsOf(second, 1_499)).toEqual({ moments: upTo(0, 1_000), more: true });
    for (const limit of [1_500, 1_501, 5_000])
      expect(await momentsOf(second, limit)).toEqual({ moments: upTo(0, 1_500), more: false });
    expect(await momentsOf(second + 1, 500)).toEqual({ moments: upTo(1_000, 1_500), more: false });
    expect(await momentsOf(second + 2, 500)).toEqual({ moments: [], more: false });
  } finally {
    await store.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
