// The command `sealpost store`: what is in it, whether it is sound, copies of it and back.
import { existsSync } from 'node:fs';
import type { Settings } from '@sealpost/server/config/config';
import { openVerifier } from '@sealpost/server/ingest/verifier';
import { hidePassword } from '@sealpost/server/runtime/urls';
import { migrateStore } from '@sealpost/server/store/open';
import { CorruptRecordError, type Store } from '@sealpost/server/store/store';
import type { CommandGroup, SettingsCommand } from '../../command.ts';
import { CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { formatBytes, formatCount, formatMoment, formatNumberOf, renderPairs, withoutControls } from '../../formats.ts';
import { quote } from '../../hints.ts';
import { createProgress } from '../../progress.ts';
import type { Session } from '../../session.ts';
import { readAudit, verifyAudit } from '../audit-trail.ts';
import { type CheckOptions, type CheckResult, checkStore, type Problem } from './check.ts';
import { copyCommand } from './copy.ts';
import { addressOf, copyStoreFolder, folderOf, requireEmpty, requireNoStore } from './folder.ts';
import { repairCommand } from './repair.ts';
import { retainCommand } from './retain.ts';

const stats: SettingsCommand = {
  name: 'stats',
  summary: 'Count streams, reports and bytes.',
  options: [{ flag: '--json', help: 'print one line of JSON' }],
  settings: ['store'],
  examples: [['Show the size of the store', 'sealpost store stats']],
  run: async ({ settings, withStore, print }) => {
    const stats = await withStore(async ({ admin, reports, quarantine }) => ({
      ...(await reports.stats()),
      catalogStreams: (await admin.list('stream')).length,
      quarantined: await quarantine.count(),
    }));
    const diskBytesPerByte = stats.reportBytes === 0 ? null : stats.fileBytes / stats.reportBytes;
    const store = hidePassword(settings.store);
    await print(
      { store, ...stats, diskBytesPerByte },
      renderPairs([
        ['store', store],
        ['streams in the catalog', formatCount(stats.catalogStreams)],
        ['streams with reports', formatCount(stats.streams)],
        ['reports', formatCount(stats.reports)],
        ['bytes of reports', formatBytes(stats.reportBytes)],
        ['bytes in use', formatBytes(stats.usedBytes)],
        ['bytes on disk', formatBytes(stats.fileBytes)],
        ['on disk per byte of report', diskBytesPerByte === null ? '–' : diskBytesPerByte.toFixed(2)],
        ['rejected lines kept', formatCount(stats.quarantined)],
      ]),
    );
  },
};

const verify: SettingsCommand = {
  name: 'verify',
  summary:
    'Check every record of every table: checksums, order, overlaps, consistency, stream and times of each report. Safe while a server is running.',
  options: [
    {
      flag: '--signatures',
      help: 'also verify every quorum, against all registered signer sets including retired ones',
    },
    { flag: '--json', help: 'print one line of JSON' },
  ],
  settings: ['store', 'verifierThreads'],
  examples: [
    ['After a crash or a move', 'sealpost store verify'],
    ['Also verify signatures', 'sealpost store verify --signatures'],
  ],
  run: async ({ session, options, settings, withStore, print }) => {
    const signal = session.interruption();
    const result = await withStore(async (store) => ({
      ...(await (options.signatures
        ? checkWithSignatures(session, store, settings, signal)
        : check(session, store, { signal }))),
      catalogStreams: (await store.admin.list('stream')).length,
    }));
    if (result.problemCount > 0) session.exitWith(exitCodes.refused);
    if (!result.complete) session.exitWith(interruptedCode(signal));
    await print(result, renderCheck(session, result));
  },
};

const checkWithSignatures = async (
  session: Session,
  store: Store,
  { verifierThreads }: Settings,
  signal: AbortSignal,
): Promise<CheckResult> => {
  const verifier = openVerifier(verifierThreads);
  try {
    const sets = await store.admin.list('signerSet');
    verifier.use(new Map(sets.map((set) => [set.configDigest, set])));
    return await check(session, store, { signal, verifier });
  } finally {
    await verifier.close();
  }
};

const check = async (
  { stderr }: Session,
  { reports, findDamage }: Store,
  options: CheckOptions,
): Promise<CheckResult> => {
  const { reports: total } = await reports.stats();
  const progress = createProgress(stderr);
  const onProgress = (count: number): void =>
    progress.update({ fraction: Math.min(1, count / Math.max(1, total)), count, label: 'reports' });
  return checkStore(reports, { ...options, findDamage, onProgress }).finally(progress.end);
};

const renderCheck = (
  { paint }: Session,
  {
    reports,
    streams,
    problemCount,
    problems,
    complete,
    catalogStreams,
  }: CheckResult & { readonly catalogStreams: number },
): string => {
  const checked = `${formatNumberOf(reports, 'report')} of ${formatNumberOf(streams, 'stream')} checked`;
  const without = Math.max(0, catalogStreams - streams);
  const others =
    without === 0
      ? ''
      : ` ${formatNumberOf(without, 'other stream')} in the catalog ${without === 1 ? 'has' : 'have'} no reports.`;
  const head = complete ? `${checked}.${others}` : `${checked} before the interruption.`;
  if (problemCount === 0) return `${head} ${paint.green('No problems found.')}\n`;
  const advice = 'To copy everything intact to a new store, run: sealpost store repair --to NEW.';
  const more = problemCount - problems.length;
  const lines = [...problems.map(renderProblem), ...(more > 0 ? [`And ${formatCount(more)} more.`] : [])];
  return `${head} ${paint.red(`${formatNumberOf(problemCount, 'problem')}.`)} ${advice}\n${lines.join('\n')}\n`;
};

const renderProblem = ({ table, key, feedId, observationsMs, what, affects }: Problem): string => {
  const place = [feedId, observationsMs === null ? null : formatMoment(observationsMs)].filter((part) => part !== null);
  const at = place.length === 0 ? '' : ` (${place.join(', ')})`;
  return `${withoutControls(`${table} ${key}`)}${at}: ${what}. Affects ${affects}.`;
};

const backup: SettingsCommand = {
  name: 'backup',
  summary: 'Write a consistent backup while the store is in use. The backup is itself a store.',
  arguments: [{ name: '<DIR>', help: 'a new or empty folder' }],
  options: [{ flag: '--json', help: 'print one line of JSON' }],
  settings: ['store'],
  examples: [['Nightly backup', 'sealpost store backup /backups/sealpost-$(date +%F)']],
  run: async ({ withStore, print }, folder: string) => {
    requireEmpty(folder, 'Use a new folder for the backup.');
    await withStore((store) => copyStoreFolder(store, folder));
    const stats = await withStore(({ reports }) => reports.stats(), addressOf(folder));
    await print(
      { backup: folder, ...stats },
      `${formatNumberOf(stats.reports, 'report')} of ${formatNumberOf(stats.streams, 'stream')} in ${folder}, ${formatBytes(stats.fileBytes)}.\n`,
    );
  },
};

const restore: SettingsCommand = {
  name: 'restore',
  summary:
    'Check a backup and copy it to the folder of --store, which must not contain a store. Nothing is overwritten.',
  arguments: [{ name: '<DIR>', help: 'a folder written by sealpost store backup' }],
  options: [{ flag: '--json', help: 'print one line of JSON' }],
  settings: ['store'],
  examples: [
    [
      'Replace a damaged store and keep its key',
      'mkdir ./bad && mv ./data/reports ./data/admin ./bad && sealpost store restore /backups/sealpost-2025-11-03',
    ],
  ],
  run: async ({ settings, withStore, print }, folder: string) => {
    const target = folderOf(settings.store);
    if (!existsSync(folder)) throw usageError(`No such folder: ${folder}. Pass the folder of a backup.`);
    requireNoStore(
      target,
      'Stop the server that uses it, move its folders reports and admin away, then run the command again.',
    );
    const stats = await withStore(async (backup) => {
      await checkQuickly(backup, folder);
      await copyStoreFolder(backup, target);
      return backup.reports.stats();
    }, addressOf(folder));
    await print(
      { restored: target, ...stats },
      `${formatNumberOf(stats.reports, 'report')} of ${formatNumberOf(stats.streams, 'stream')} restored to ${target}.\n` +
        `Next: check every report with sealpost store verify --store ${quote(settings.store)}, then start the server again.\n`,
    );
  },
};

const migrate: SettingsCommand = {
  name: 'migrate',
  summary: 'Create the tables of a store in PostgreSQL. Run it once before starting the first server.',
  options: [{ flag: '--json', help: 'print one line of JSON' }],
  settings: ['store'],
  examples: [['Create a store', 'sealpost store migrate --store postgres://sealpost@db.example/sealpost']],
  run: async ({ settings, print }) => {
    const store = hidePassword(settings.store);
    const migrated = await migrateStore(settings.store);
    const { from, to } = migrated;
    await print(
      { store, ...migrated },
      from === to ? `${store} is up to date: schema ${to}.\n` : `${store} created with schema ${to}.\n`,
    );
  },
};

// Administrative records, the audit log, and each stream's newest reports: seconds for any size. The rest is for `verify`.
const checkQuickly = async (store: Store, folder: string): Promise<void> => {
  const { admin, reports } = store;
  const refuse = (what: string) =>
    new CommandError(exitCodes.refused, `The backup in ${folder} is damaged: ${what}. Use another one.`);
  try {
    const { altered } = await verifyAudit(readAudit(admin));
    if (altered !== null) throw refuse(`audit entry ${altered.sequence}, ${altered.what}`);
    await admin.list('signerSet');
    for (const { feedId } of await admin.list('stream')) reports.latest(feedId); // damage on the way is noted
    for (const { reason } of [...(await store.findDamage()), ...store.damage()]) throw refuse(reason);
  } catch (error) {
    throw error instanceof CorruptRecordError ? refuse(error.message) : error;
  }
};

export const storeCommands: CommandGroup = {
  name: 'store',
  summary: 'Maintain the store: stats, verify, repair, backup, restore, migrate, copy, retain.',
  commands: [stats, verify, repairCommand, backup, restore, migrate, copyCommand, retainCommand],
};
