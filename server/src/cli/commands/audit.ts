// The command `sealpost audit`: who changed what, and whether the log of it is whole.
import type { Command } from 'commander';
import type { AuditEntry } from '../../store/store.ts';
import { addExamples, addSettings, parseCount, type RawOptions, readSettings } from '../command-options.ts';
import { exitCodes } from '../failure.ts';
import { type Column, formatCount, formatMoment, renderTable, toJsonLine } from '../formats.ts';
import { printJson, type Session } from '../session.ts';
import { withStore } from '../store-access.ts';
import { readAudit, verifyAudit } from './audit-trail.ts';

const limitMax = 100_000;
const detailCharactersMax = 120;

export const addAuditCommand = (program: Command, session: Session): void => {
  const audit = program.command('audit').description('Read the audit log of administrative changes: list, verify.');
  const list = audit
    .command('list')
    .description('List the newest entries, oldest first.')
    .option('--limit <count>', `number of entries, at most ${limitMax}`, '20')
    .option('--json', 'print entries as NDJSON')
    .action((options: RawOptions) => listAudit(session, options));
  addSettings(list, ['store']);
  addExamples(list, [['Show recent changes', 'sealpost audit list']]);
  const verify = audit
    .command('verify')
    .description('Verify the hash chain and report the first altered or missing entry.')
    .option('--json', 'print the verdict as one line of JSON')
    .action((options: RawOptions) => verifyLog(session, options));
  addSettings(verify, ['store']);
  addExamples(verify, [['Verify the log', 'sealpost audit verify']]);
};

const listAudit = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const limit = parseCount('--limit', String(options.limit), 1, limitMax);
  const newest = await withStore(values.store, ({ admin }) => admin.auditNewest(limit));
  const entries = newest.filter((entry): entry is AuditEntry => !('damaged' in entry));
  await (options.json
    ? session.write(entries.map((entry) => toJsonLine(entry)).join(''))
    : session.write(renderEntries(session, entries)));
  for (const entry of newest) {
    if (!('damaged' in entry)) continue;
    session.stderr.write(`error: Entry ${entry.sequence} was skipped: ${entry.damaged}. Run: sealpost store verify.\n`);
    session.exitWith(exitCodes.refused);
  }
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

const verifyLog = async (session: Session, options: RawOptions): Promise<void> => {
  const { values } = await readSettings(session, options);
  const verdict = await withStore(values.store, ({ admin }) => verifyAudit(readAudit(admin)));
  const { entries, last, altered } = verdict;
  if (altered !== null) session.exitWith(exitCodes.refused);
  if (options.json) return printJson(session, verdict);
  const { green, red } = session.paint;
  const whole = `${formatCount(entries)} ${entries === 1 ? 'entry' : 'entries'} verified.`;
  const note =
    last === null ? '' : ` To detect truncation later, record the last entry: ${last.sequence} with hash ${last.hash}.`;
  await session.write(
    altered === null
      ? `${green(whole)}${note}\n`
      : `${red(`Entry ${altered.sequence} failed verification: ${altered.what}.`)} ${whole}\n`,
  );
};
