// The command `sealpost store repair`: copies everything intact to a new store, lists what is not, and fetches missing reports from another
// deployment. The damaged store is never changed (D289).
import type { FeedId } from '@sealpost/protocol';
import type { ResolvedSettings } from '@sealpost/server/config/config';
import { hidePassword } from '@sealpost/server/runtime/urls';
import type { Copied, DamagedRecord } from '@sealpost/server/store/copy';
import { dependentsOf } from '@sealpost/server/store/damage';
import { openStore } from '@sealpost/server/store/open';
import type { Store } from '@sealpost/server/store/store';
import type { SettingsCommand } from '../../command.ts';
import type { RawOptions } from '../../command-options.ts';
import { parseServerUrl, readUser, userOptions } from '../../credentials.ts';
import { CommandError, exitCodes, interruptedCode, usageError } from '../../failure.ts';
import { formatCount, formatMoment, formatNumberOf, withoutControls } from '../../formats.ts';
import { quote } from '../../hints.ts';
import { createProgress, type Progress } from '../../progress.ts';
import { explainRemote } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { storeExists, withStore } from '../../store-access.ts';
import { copyInto, isSameStore } from './copy.ts';
import { type Fetched, fetchGaps, type Gap, gapsOf, isWithin, type Source } from './fetch.ts';
import { folderOf } from './folder.ts';

const about = `Stop the nodes that use the store first: what they store during the copy may be missing. Every copied report is read back and compared. Candles, counters and
the order of appending are derived again in the new store. What is not intact is listed and left out; an audit log is copied up to its first
damaged entry. The exit code is 1 while something is lost.

--from fetches missing reports from another server, with the credentials of --profile, of SEALPOST_USER_ID and SEALPOST_SECRET, or of the profile
default: it fills every gap of the streams that lost reports, up to the newest report of that server. Each report is verified against the signer sets of the
new store.`;

export const repairCommand: SettingsCommand = {
  name: 'repair',
  summary: 'Copy everything intact to a new store, and list what is lost. The damaged store is not changed.',
  options: [
    { flag: '--to <url>', help: 'the new store: a folder without one, or an empty PostgreSQL schema', required: true },
    { flag: '--from <url>', help: 'fetch missing reports from another server' },
    { flag: '--json', help: 'print one line of JSON' },
    ...userOptions,
  ],
  settings: ['store', 'keyFile', 'verifierThreads'],
  about,
  examples: [
    ['Copy what is intact', 'sealpost store repair --to ./repaired'],
    [
      'Fetch missing reports from a replica',
      'sealpost store repair --to ./repaired --from https://replica.example.com --profile replica',
    ],
  ],
  run: async ({ session, options, settings, resolved, print }) => {
    const to = String(options.to);
    const signal = session.interruption();
    if (isSameStore(settings.store, to)) throw usageError('--to is the damaged store itself. Set it to a new store.');
    await requireEmptyStore(to);
    const source = options.from === undefined ? undefined : await openSource(session, options, signal);
    const result = await withStore(settings.store, (damaged) =>
      repairInto({ session, signal, source, verifierThreads: settings.verifierThreads }, damaged, to, settings.store),
    ).catch((error: unknown) => {
      if (!signal.aborted) throw error;
      throw new CommandError(
        interruptedCode(signal),
        `Interrupted. Delete the incomplete store ${quote(hidePassword(to))}, then run the command again.`,
      );
    });
    if (result.lost.length > 0) session.exitWith(exitCodes.refused);
    await print(
      { store: hidePassword(settings.store), to: hidePassword(to), ...result },
      render(session, result, hidePassword(to), source === undefined, nextStep(resolved, to)),
    );
  },
};

/** How the node is started on the new store, with the key of the damaged one. */
const nextStep = ({ values: { keyFile }, sources }: ResolvedSettings, to: string): string => {
  const isBeside = sources.keyFile === 'default' && !/^postgres(?:ql)?:/.test(to);
  return isBeside
    ? `cp ${quote(keyFile)} ${quote(`${folderOf(to)}/`)} && sealpost serve --store ${quote(to)}`
    : `sealpost serve --store ${quote(hidePassword(to))} --key-file ${quote(keyFile)}`;
};

/** What is lost: a record, and the time range of the reports in it where they are known; null ends before the first or after the newest report. */
type Loss = Pick<DamagedRecord, 'table' | 'key' | 'reason'> & {
  readonly feedId: FeedId | null;
  readonly fromMs: number | null;
  readonly toMs: number | null;
  readonly affects: string;
};

type Result = {
  readonly reports: number;
  readonly auditEntries: number;
  /** Damaged records whose content was derived again, by table. */
  readonly rebuilt: Readonly<Record<string, number>>;
  readonly lost: readonly Loss[];
  readonly fetched: Fetched | null;
};

type Parts = {
  readonly session: Session;
  readonly signal: AbortSignal;
  readonly source: Source | undefined;
  readonly verifierThreads: number;
};

/** Throws unless there is no store at an address, or one without any record. */
const requireEmptyStore = async (to: string): Promise<void> => {
  if (!(await storeExists(to))) return;
  const isEmpty = await withStore(to, async ({ reports, admin }) => {
    return (await reports.position()) === 0 && (await admin.auditNewest(1)).length === 0;
  });
  if (!isEmpty) throw new CommandError(exitCodes.refused, `${hidePassword(to)} is not empty. Set --to to a new store.`);
};

/** The other deployment, asked once: a wrong address or secret shows before anything is copied. */
const openSource = async (session: Session, options: RawOptions, signal: AbortSignal): Promise<Source> => {
  const url = parseServerUrl('--from', String(options.from));
  const user = await readUser(session, options, url);
  const client = user.openClient(url, session);
  await explainRemote(url, () => client.feeds({ signal }));
  const warn = (text: string): void => void session.stderr.write(`warning: ${withoutControls(text)}\n`);
  return { client, url, signal, warn };
};

const repairInto = async (parts: Parts, damaged: Store, to: string, store: string): Promise<Result> => {
  const { session, signal } = parts;
  const target = await openStore(to, 'write', { isCommand: true });
  const progress = createProgress(session.stderr);
  try {
    const copied = await copyInto(progress, damaged, target, { signal, isRepair: true });
    const { fetched, lost } = await complete(parts, progress, target, copied);
    const rebuilt: Record<string, number> = {};
    for (const { table } of copied.damaged.filter(isDerived)) rebuilt[table] = (rebuilt[table] ?? 0) + 1;
    const { reports, auditEntries } = copied;
    const detail = { from: hidePassword(store), reports, lost: lost.length };
    await target.admin.log({ atMs: session.nowMs(), actor: session.actor(), action: 'store.repair', detail });
    return { reports, auditEntries, rebuilt, lost, fetched };
  } finally {
    progress.end();
    await target.close();
  }
};

/** Tables of what a store derives from reports and administrative records, or has of its own. */
const derivedTables: ReadonlySet<string> = new Set([
  'appended',
  'candles',
  'counters',
  'dayCandles',
  'feedIds',
  'heads',
  'hourCandles',
  'lineage',
  'meta',
  'numbers',
  'partitions',
  'writer',
]);
/** Tables that cannot be derived and have no reports. Engines name those of reports as they like. */
const otherTables: ReadonlySet<string> = new Set([
  'audit',
  'quarantine',
  'records',
  'retention',
  'secretUses',
  'usage',
]);

const isDerived = ({ table }: Pick<DamagedRecord, 'table'>): boolean => derivedTables.has(table);
const isOfReports = ({ table }: Pick<DamagedRecord, 'table'>): boolean =>
  !derivedTables.has(table) && !otherTables.has(table);

/** Fetches what is missing, if there is a source, and says what is still lost. */
const complete = async (
  { source, verifierThreads }: Parts,
  progress: Progress,
  target: Store,
  { damaged, damagedCount }: Copied,
): Promise<{ readonly fetched: Fetched | null; readonly lost: readonly Loss[] }> => {
  const ofReports = damaged.filter(isOfReports);
  const named = new Set(ofReports.flatMap(({ feedId }) => feedId ?? []));
  // A record that does not say its stream may be of any.
  if (ofReports.some(({ feedId }) => feedId === undefined) || damagedCount > damaged.length)
    for (const { feedId } of await target.admin.list('stream')) named.add(feedId);
  const before = await listGaps(target, named);
  const isBeforeAll = ({ feedId, fromMs, toMs }: Gap): boolean =>
    fromMs === null &&
    !ofReports.some(
      (one) => (one.feedId ?? feedId) === feedId && (one.observationsMs ?? 0) <= (toMs ?? Number.POSITIVE_INFINITY),
    );
  const fetched =
    source === undefined || ofReports.length === 0
      ? null
      : await fetchGaps(
          source,
          target,
          verifierThreads,
          before.filter((gap) => !isBeforeAll(gap)),
          (count) => progress.update({ fraction: undefined, count, label: 'reports fetched' }),
        );
  const after = fetched === null ? before : await listGaps(target, named);
  const lost = new Map<string, Loss>();
  for (const one of damaged.filter((record) => !isDerived(record))) {
    const { table, key, reason, feedId, observationsMs: ms } = one;
    const whole = before.find((gap) => gap.feedId === feedId && ms !== undefined && isWithin(gap, ms));
    // What is before the first report and after the newest is missing only if the record says so.
    const isMissing = (gap: Gap): boolean =>
      isWithin(gap, ms ?? -1) || (gap.fromMs !== null && gap.toMs !== null && isPart(gap, whole));
    const rest = after.filter((gap) => whole !== undefined && gap.feedId === feedId && isMissing(gap));
    if (isOfReports(one) && whole !== undefined && rest.length === 0) continue; // all of it was fetched
    const [fromMs, toMs] = [rest[0]?.fromMs ?? null, rest.at(-1)?.toMs ?? null];
    const loss = { table, key, reason, feedId: feedId ?? null, fromMs, toMs, affects: dependentsOf(table, key) };
    lost.set(rest.length > 0 ? `${feedId} ${fromMs} ${toMs}` : `${table} ${key}`, loss);
  }
  return { fetched, lost: [...lost.values()] };
};

const isPart = ({ fromMs, toMs }: Gap, whole: Gap | undefined): boolean =>
  whole !== undefined &&
  (fromMs ?? 0) >= (whole.fromMs ?? 0) &&
  (toMs ?? 0) <= (whole.toMs ?? Number.POSITIVE_INFINITY);

const listGaps = async ({ reports }: Store, feedIds: ReadonlySet<FeedId>): Promise<readonly Gap[]> => {
  const gaps: Gap[] = [];
  for (const feedId of feedIds) gaps.push(...(await gapsOf(reports, feedId)));
  return gaps;
};

const render = (
  { paint }: Session,
  { reports, auditEntries, rebuilt, lost, fetched }: Result,
  to: string,
  isOffline: boolean,
  next: string,
): string => {
  const derived = Object.entries(rebuilt).map(([table, count]) => `${formatCount(count)} of ${table}`);
  const hasLost = (isMeant: (one: Loss) => boolean): boolean => lost.some(isMeant);
  const lines = [
    `${formatNumberOf(reports, 'report')} and the audit log up to entry ${formatCount(auditEntries)} copied to ${to}; all verified.`,
    ...(derived.length > 0 ? [`Damaged records derived again: ${derived.join(', ')}.`] : []),
    ...(fetched === null ? [] : [renderFetched(fetched)]),
    ...(lost.length === 0 ? [paint.green('Nothing is lost.')] : [paint.red('Lost:'), ...lost.map(renderLoss)]),
    ...(isOffline && hasLost(isOfReports)
      ? [`To fetch missing reports from another server, delete ${to} and run the command again with --from URL.`]
      : []),
    ...(hasLost(({ table }) => table === 'records')
      ? ['Create lost accounts again with sealpost account create; import lost streams and signer sets.']
      : []),
    `Next: ${next}`,
    'Keep the damaged store until nothing is missing.',
  ];
  return `${lines.join('\n')}\n`;
};

const renderFetched = ({ stored, rejected }: Fetched): string =>
  `${formatNumberOf(stored, 'report')} fetched and stored${rejected === 0 ? '' : `, ${formatCount(rejected)} rejected`}.`;

const renderLoss = ({ table, key, feedId, fromMs, toMs, reason, affects }: Loss): string => {
  const [from, to] = [fromMs, toMs].map((ms) => (ms === null ? undefined : formatMoment(ms)));
  if (feedId === null || (from === undefined && to === undefined))
    return `  ${withoutControls(`${table} ${key}`)}: ${reason}. Affects ${affects}.`;
  const range = from === undefined ? `to ${to}` : `from ${from} ${to === undefined ? 'on' : `to ${to}`}`;
  return `  ${feedId}: reports ${range}; ${reason}`;
};
