// A reader of damaged or shared stores. `check`: opens each folder and prints what it could read; `hold`: takes a snapshot and
// keeps it until killed; `watch`: reads over and over, and prints
// what should not be; `raw`: opens without our checks, the negative control of a truncated file.
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { openStore } from '../../server/src/store/open.ts';
import type { Store } from '../../server/src/store/store.ts';
import { secondStream } from '../support/signed-reports.ts';

const [act = '', ...folders] = process.argv.slice(2);
const streams = [secondStream(1), secondStream(2), secondStream(3)];
const print = (line: string): void => void writeSync(1, `${line}\n`);
const hash = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex');
const codeOf = (error: unknown) => (error as { code?: string; name?: string }).code ?? (error as Error).name;

const readAll = async (store: Store, folder: string): Promise<void> => {
  for (const feedId of streams) {
    for (let second = Number(process.env.FROM); second <= Number(process.env.TO); second++) {
      try {
        const [found] = await store.reports.at([feedId], second);
        print(
          found
            ? `report ${folder} ${feedId} ${found.observationsMs} ${hash(found.fullReport)}`
            : `miss ${folder} ${feedId} ${second}`,
        );
      } catch (error) {
        print(`error ${folder} ${codeOf(error)}`);
      }
    }
    try {
      const latest = store.reports.latest(feedId);
      if (latest) print(`latest ${folder} ${feedId} ${latest.observationsMs} ${hash(latest.json)}`);
    } catch (error) {
      print(`error ${folder} ${codeOf(error)}`);
    }
  }
};

if (act === 'check') {
  for (const folder of folders) {
    print(`begin ${folder}`);
    try {
      const store = await openStore(folder, 'read');
      await readAll(store, folder);
      await store.close();
    } catch (error) {
      print(`refused ${folder} ${codeOf(error)}`);
    }
    print(`end ${folder}`);
  }
}

if (act === 'hold') {
  const root = open({ path: join(folders[0] as string, 'reports'), readOnly: true, maxDbs: 16 });
  root.useReadTransaction();
  root.getStats();
  print('holding');
  setInterval(() => {}, 1_000);
}

if (act === 'watch') {
  const store = await openStore(folders[0] as string, 'read');
  const newest = new Map<string, number>();
  let reads = 0;
  process.once('SIGTERM', () => {
    print(`reads ${reads}`);
    process.exit(0);
  });
  print('watching');
  for (;;) {
    for (const feedId of streams) {
      try {
        const latest = store.reports.latest(feedId);
        const ms = latest?.observationsMs ?? 0;
        if (ms < (newest.get(feedId) ?? 0)) print(`back ${feedId} ${ms}`);
        newest.set(feedId, ms);
        if (ms > 0 && (await store.reports.at([feedId], ms / 1_000))[0]?.observationsMs !== ms)
          print(`miss ${feedId} ${ms}`);
        reads += 2;
      } catch (error) {
        print(`error ${codeOf(error)}`);
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 40)); // four of them read 500 times a second or so
  }
}

if (act === 'raw') {
  const root = open({
    path: join(folders[0] as string, 'reports'),
    readOnly: true,
    maxDbs: 16,
    encoding: 'binary',
    keyEncoding: 'binary',
  });
  for (const { value } of root.openDB('runs', { encoding: 'binary', keyEncoding: 'binary' }).getRange())
    hash(value as Buffer);
  print('read');
}
