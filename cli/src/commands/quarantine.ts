// The command `sealpost quarantine`: lists lines that ingest rejected, with the reason.
import type { QuarantinedReport } from '@sealpost/server/store/store';
import type { CommandGroup, SettingsCommand } from '../command.ts';
import { parseCount } from '../command-options.ts';
import { formatCount, formatMoment, formatNumberOf, renderTable, toJsonLine } from '../formats.ts';
import type { Session } from '../session.ts';

const limitMax = 10_000;

const list: SettingsCommand = {
  name: 'list',
  summary: 'List rejected lines with the reason, newest first.',
  options: [
    { flag: '--limit <count>', help: `number of lines, at most ${limitMax}`, default: '20' },
    { flag: '--json', help: 'print NDJSON that includes each line itself' },
  ],
  settings: ['store'],
  examples: [
    ['Show recently rejected lines', 'sealpost quarantine list'],
    [
      'Ingest rejected lines again',
      `sealpost quarantine list --limit ${limitMax} --json | jq -r .line | sealpost ingest -`,
    ],
  ],
  run: async ({ session, options, withStore }) => {
    const limit = parseCount('--limit', String(options.limit), 1, limitMax);
    const { refused, count } = await withStore(async ({ quarantine }) => ({
      refused: await quarantine.list(limit),
      count: await quarantine.count(),
    }));
    if (options.json) return session.write(refused.map((one) => toJsonLine(one)).join(''));
    const shown = `${formatCount(refused.length)} of ${formatNumberOf(count, 'rejected line')} shown.\n`;
    await session.write(count === 0 ? 'No rejected lines.\n' : `${renderRefused(session, refused)}${shown}`);
  },
};

export const quarantineCommands: CommandGroup = {
  name: 'quarantine',
  summary: 'Inspect rejected reports: list.',
  commands: [list],
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
