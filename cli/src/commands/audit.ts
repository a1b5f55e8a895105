// The command `sealpost audit`: who changed what, and whether the log of it is whole.
import type { AuditEntry } from '@sealpost/server/store/store';
import type { CommandGroup, SettingsCommand } from '../command.ts';
import { parseCount } from '../command-options.ts';
import { exitCodes } from '../failure.ts';
import { type Column, formatCount, formatMoment, renderTable, toJsonLine } from '../formats.ts';
import type { Session } from '../session.ts';
import { readAudit, verifyAudit } from './audit-trail.ts';

const limitMax = 100_000;
const detailCharactersMax = 120;

const list: SettingsCommand = {
  name: 'list',
  summary: 'List the newest entries, oldest first.',
  options: [
    { flag: '--limit <count>', help: `number of entries, at most ${limitMax}`, default: '20' },
    { flag: '--json', help: 'print entries as NDJSON' },
  ],
  settings: ['store'],
  examples: [['Show recent changes', 'sealpost audit list']],
  run: async ({ session, options, withStore }) => {
    const limit = parseCount('--limit', String(options.limit), 1, limitMax);
    const newest = await withStore(({ admin }) => admin.auditNewest(limit));
    const entries = newest.filter((entry): entry is AuditEntry => !('damaged' in entry));
    if (entries.length < newest.length) session.exitWith(exitCodes.refused); // before a reader may leave
    await (options.json
      ? session.write(entries.map((entry) => toJsonLine(entry)).join(''))
      : session.write(renderEntries(session, entries)));
    for (const entry of newest) {
      if (!('damaged' in entry)) continue;
      session.stderr.write(
        `error: Entry ${entry.sequence} was skipped: ${entry.damaged}. Run: sealpost store verify.\n`,
      );
    }
  },
};

const verify: SettingsCommand = {
  name: 'verify',
  summary: 'Verify the hash chain and report the first altered or missing entry.',
  options: [{ flag: '--json', help: 'print the verdict as one line of JSON' }],
  settings: ['store'],
  examples: [['Verify the log', 'sealpost audit verify']],
  run: async ({ session, withStore, print }) => {
    const verdict = await withStore(({ admin }) => verifyAudit(readAudit(admin)));
    const { entries, last, altered } = verdict;
    if (altered !== null) session.exitWith(exitCodes.refused);
    const { green, red } = session.paint;
    const whole = `${formatCount(entries)} ${entries === 1 ? 'entry' : 'entries'} verified.`;
    const note =
      last === null
        ? ''
        : ` To detect truncation later, record the last entry: ${last.sequence} with hash ${last.hash}.`;
    await print(
      verdict,
      altered === null
        ? `${green(whole)}${note}\n`
        : `${red(`Entry ${altered.sequence} failed verification: ${altered.what}.`)} ${whole}\n`,
    );
  },
};

export const auditCommands: CommandGroup = {
  name: 'audit',
  summary: 'Read the audit log of administrative changes: list, verify.',
  commands: [list, verify],
};

const renderEntries = (session: Session, entries: readonly AuditEntry[]): string => {
  const titles = ['at', 'actor', 'action', 'detail'];
  const columns: readonly Column[] = [{ title: '#', align: 'right' }, ...titles.map((title) => ({ title }))];
  const rows = entries.map(({ sequence, atMs, actor, action, detail }) => [
    `${sequence}`,
    formatMoment(atMs),
    actor,
    action,
    shorten(JSON.stringify(detail)),
  ]);
  return renderTable(columns, rows, session.paint);
};

const shorten = (text: string): string =>
  text.length > detailCharactersMax ? `${text.slice(0, detailCharactersMax)}…` : text;
