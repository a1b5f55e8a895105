// The command `sealpost quarantine`: the lines that were refused at the door, with the reason.
import type { Command } from 'commander';
import type { QuarantinedReport } from '../../store/store.ts';
import { addExamples, addSettings, parseCount, type RawOptions, readSettings } from '../command-options.ts';
import { formatCount, formatMoment, formatNumberOf, renderTable, toJsonLine } from '../formats.ts';
import type { Session } from '../session.ts';
import { withStore } from '../store-access.ts';

const limitMax = 10_000;

export const addQuarantineCommand = (program: Command, session: Session): void => {
  const quarantine = program.command('quarantine').description('Inspect rejected reports: list.');
  const command = quarantine
    .command('list')
    .description('List rejected lines with the reason, newest first.')
    .option('--limit <count>', `number of lines, at most ${limitMax}`, '20')
    .option('--json', 'print NDJSON that includes each line itself')
    .action((options: RawOptions) => listQuarantine(session, options));
  addSettings(command, ['store']);
  addExamples(command, [
    ['Show recently rejected lines', 'sealpost quarantine list'],
    [
      'Ingest rejected lines again',
      `sealpost quarantine list --limit ${limitMax} --json | jq -r .line | sealpost ingest -`,
    ],
  ]);
};

const listQuarantine = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const limit = parseCount('--limit', String(options.limit), 1, limitMax);
  const { refused, count } = await withStore(values.store, async ({ quarantine }) => ({
    refused: await quarantine.list(limit),
    count: await quarantine.count(),
  }));
  if (options.json) return session.write(refused.map((one) => toJsonLine(one)).join(''));
  const shown = `${formatCount(refused.length)} of ${formatNumberOf(count, 'rejected line')} shown.\n`;
  await session.write(count === 0 ? 'No rejected lines.\n' : `${renderRefused(session, refused)}${shown}`);
};

const renderRefused = ({ paint }: Session, refused: readonly QuarantinedReport[]): string => {
  const columns = ['rejected at', 'code', 'feed ID', 'observed at', 'reason'].map((title) => ({ title }));
  const rows = refused.map(({ atMs, code, feedId, observationsMs, message }) => [
    formatMoment(atMs),
    code,
    feedId ?? '–',
    observationsMs === null ? '–' : formatMoment(observationsMs),
    message,
  ]);
  return renderTable(columns, rows, paint);
};
