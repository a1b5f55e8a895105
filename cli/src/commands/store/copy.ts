// The command `sealpost store copy`: from one engine to the other, or from one place to another.
import { realpathSync } from 'node:fs';
import { hidePassword } from '@sealpost/server/runtime/urls';
import { type Copied, type CopyOptions, copyStore } from '@sealpost/server/store/copy';
import { openStore } from '@sealpost/server/store/open';
import type { Store } from '@sealpost/server/store/store';
import type { SettingsCommand } from '../../command.ts';
import { CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { formatCount, formatNumberOf } from '../../formats.ts';
import { quote } from '../../hints.ts';
import { createProgress, type Progress } from '../../progress.ts';
import type { Session } from '../../session.ts';
import { folderOf } from './folder.ts';

export const copyCommand: SettingsCommand = {
  name: 'copy',
  summary:
    'Copy a whole store into another one, of any engine, and compare every report. Run it again to resume; the source may be in use.',
  options: [
    { flag: '--from <url>', help: 'source store (default: the setting store)' },
    { flag: '--to <url>', help: 'target store; created if missing (default: the setting store)' },
    { flag: '--json', help: 'print one line of JSON' },
  ],
  settings: [],
  examples: [
    [
      'Into the database of a config file that has its password',
      'sealpost store copy --from lmdb:./data --config ./sealpost.json',
    ],
    ['From that database into a folder', 'sealpost store copy --to lmdb:./data --config ./sealpost.json'],
    ['Between two stores', 'sealpost store copy --from lmdb:./data --to postgres://sealpost@db.example/sealpost'],
  ],
  run: async ({ session, options, settings, withStore, print }) => {
    if (options.from === undefined && options.to === undefined)
      throw usageError('Set --from, --to or both. The other one defaults to the setting store.');
    const [from, to] = [String(options.from ?? settings.store), String(options.to ?? settings.store)];
    if (isSameStore(from, to))
      throw usageError(
        '--from and --to are the same store. Set the other one; it defaults to the setting store. See: sealpost config.',
      );
    const signal = session.interruption();
    const { damagedCount, ...copied } = await withStore((source) => copyTo(session, source, to, signal), from).catch(
      (error: unknown) => {
        if (signal.aborted)
          throw new CommandError(interruptedCode(signal), 'Interrupted. Run the command again to resume.');
        throw error;
      },
    );
    if (damagedCount > 0) session.exitWith(exitCodes.refused);
    const damaged =
      damagedCount === 0
        ? ''
        : `${formatNumberOf(damagedCount, 'damaged record')} skipped. See: sealpost store verify --store ${quote(hidePassword(from))}.\n`;
    await print(
      { from: hidePassword(from), to: hidePassword(to), ...copied, damaged: damagedCount },
      `${formatNumberOf(copied.reports, 'report')} in ${hidePassword(to)}, ${formatCount(copied.duplicates)} already present; all verified.\n${damaged}`,
    );
  },
};

/** Whether two addresses lead to one store. A folder may have several paths. */
export const isSameStore = (from: string, to: string): boolean => from === to || placeOf(from) === placeOf(to);

const placeOf = (url: string): string => {
  try {
    return realpathSync(folderOf(url));
  } catch {
    return url; // a database, or a folder that is not there yet
  }
};

/** Copies with a progress bar. */
export async function copyInto(
  progress: Progress,
  source: Store,
  target: Store,
  options: CopyOptions,
): Promise<Copied> {
  const { reports: total } = await source.reports.stats();
  return copyStore(source, target, {
    ...options,
    onProgress: ({ part, reports: count }) =>
      progress.update({ fraction: Math.min(1, count / Math.max(1, total)), count, label: `reports ${part}` }),
  });
}

const copyTo = async (session: Session, source: Store, to: string, signal: AbortSignal): Promise<Copied> => {
  const target = await openStore(to, 'write', { isCommand: true });
  const progress = createProgress(session.stderr);
  try {
    return await copyInto(progress, source, target, { signal });
  } finally {
    progress.end();
    await target.close();
  }
};
