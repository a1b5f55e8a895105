// A store of this machine as the target of a mirror, while its administrative records cannot be read for a moment.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toReportJson } from '@sealpost/protocol';
import { resolveSettings } from '@sealpost/server/config/config';
import { openStore } from '@sealpost/server/store/open';
import { type AdminStore, type Store, StoreError } from '@sealpost/server/store/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { act, registerSigners, testStream } from '../../../../tests/support/running-ingest.ts';
import { createSignedReports, secondStream } from '../../../../tests/support/signed-reports.ts';
import { TransientError } from '../ingest/remote.ts';
import { createLocalTarget, type MirrorTarget } from './target.ts';

const { report, signerSets } = await createSignedReports();
const feedId = secondStream(1);
const start = Math.floor(Date.now() / 1_000) - 100;
let folder: string;
let store: Store;
let target: MirrorTarget;
/** Lists of administrative records that fail, from now on, and how many did. */
let failing: number;
let failed: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sealpost-target-'));
  store = await openStore(folder, 'write');
  await store.admin.update('stream', [feedId], () => [testStream(feedId)], act);
  await registerSigners(store, signerSets);
  [failing, failed] = [0, 0];
  const list: AdminStore['list'] = async (kind) => {
    if (failing > failed) {
      failed += 1;
      throw new StoreError('store_unavailable', 'The database did not answer.');
    }
    return store.admin.list(kind);
  };
  const { values } = resolveSettings({ flags: { network: 'testnet' }, env: {}, file: undefined });
  const session = { nowMs: Date.now, actor: () => 'test' };
  target = createLocalTarget({ ...store, admin: { ...store.admin, list } }, session, values);
});
afterEach(async () => {
  await target.close();
  rmSync(folder, { recursive: true, force: true });
});

/** What becomes of a report that is sent; an error is returned. */
const send = async (second: number): Promise<unknown> => {
  const stored = report(feedId, second, second);
  const line = JSON.stringify(toReportJson(feedId, stored, `0x${Buffer.from(stored.fullReport).toString('hex')}`));
  const lines = (async function* () {
    yield Buffer.from(`${line}\n`);
  })();
  try {
    const results: string[] = [];
    for await (const batch of target.send(lines, new AbortController().signal))
      results.push(...batch.map(({ result }) => result));
    return results;
  } catch (error) {
    return error;
  }
};

test('target: a failure to read the records at the first report is one to retry', async () => {
  failing = 1;
  expect(await send(start)).toBeInstanceOf(TransientError);
  expect(await send(start)).toEqual(['stored']);
});

test('target: reports are stored again once the records were reloaded after a failure', async () => {
  expect(await send(start)).toEqual(['stored']);
  failing = 1;
  await store.admin.update('stream', [feedId], () => [testStream(feedId, { assetName: 'Other' })], act);
  await expect.poll(() => failed).toBe(1);
  expect(await send(start + 1)).toBeInstanceOf(TransientError);
  let next = start + 2;
  await expect.poll(() => send(next++), { timeout: 5_000, interval: 200 }).toEqual(['stored']);
});

test('target: a store that cannot be administered for a moment is one to retry', async () => {
  failing = 1;
  await expect(target.administer((admin) => admin.list('stream'))).rejects.toBeInstanceOf(TransientError);
  expect(await target.administer((admin) => admin.list('stream'))).toHaveLength(1);
});
