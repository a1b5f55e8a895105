// A store with something in every table, and everything that must still be answered when one bit of it is flipped.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FeedId, toReportJson } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { type Account, createStoreFolder } from '../faults/store-folder.ts';
import { registerSigners } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

/** What the programs that open damaged copies need to know. */
export type World = {
  readonly keyFile: string;
  readonly accounts: readonly Account[];
  readonly feedIds: readonly FeedId[];
  /** SHA-256 of each full report by `feedId observationsTimestamp`, those of `later` included. */
  readonly expected: Readonly<Record<string, string>>;
  /** Every stored report as a line, and one more of each stream. */
  readonly lines: readonly string[];
  readonly later: readonly string[];
  readonly fromSecond: number;
};

export type DamageWorld = {
  readonly world: World;
  readonly file: string;
  readonly folder: string;
  readonly remove: () => void;
};

const reportsPerStream = 250;
const batchReports = 50;
const everySeconds = 20;

const lineOf = (report: StoredReport): string =>
  JSON.stringify(toReportJson(report.feedId, report, `0x${Buffer.from(report.fullReport).toString('hex')}`));

const keyOf = ({ feedId, observationsMs }: StoredReport): string => `${feedId} ${observationsMs / 1_000}`;

/** Makes the store, and fills it. */
export const createDamageWorld = async (): Promise<DamageWorld> => {
  const feedIds = [1, 2, 3].map(secondStream);
  const { report, signerSets } = await createSignedReports('damage');
  const { root, folder, keyFile, accounts, remove } = await createStoreFolder('damage', feedIds, ['one', 'two']);
  const lastSecond = Math.floor(Date.now() / 1_000) - 120;
  const fromSecond = lastSecond - reportsPerStream * everySeconds;
  const at = (feedId: FeedId, i: number): StoredReport => {
    const end = fromSecond + (i + 1) * everySeconds;
    return report(feedId, end - everySeconds + 1, end, 10n ** 18n + BigInt(i));
  };
  const reports = feedIds.flatMap((feedId) => Array.from({ length: reportsPerStream }, (_, i) => at(feedId, i)));
  const later = feedIds.map((feedId) => at(feedId, reportsPerStream));
  const store = await openStore(folder, 'write');
  await registerSigners(store, signerSets);
  for (let i = 0; i < reports.length; i += batchReports)
    await store.reports.append(reports.slice(i, i + batchReports).map((one) => ({ ...one, price: 10n ** 18n })));
  const refused = { atMs: Date.now(), code: 'unknown_stream', message: '', feedId: null, observationsMs: null };
  await store.quarantine.add(['a', 'b', 'c'].map((line) => ({ ...refused, line })));
  const day = new Date().toISOString().slice(0, 10);
  await store.usage.add(
    accounts.map(({ userId }) => ({ userId, day, route: 'reportLatest', requests: 7 })),
    [],
    Date.now(),
  );
  await store.close();
  const hash = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
  const world: World = {
    keyFile,
    accounts,
    feedIds,
    expected: Object.fromEntries([...reports, ...later].map((one) => [keyOf(one), hash(one.fullReport)])),
    lines: reports.map(lineOf),
    later: later.map(lineOf),
    fromSecond,
  };
  const file = join(root, 'world.json');
  writeFileSync(file, JSON.stringify(world));
  return { world, file, folder, remove };
};
