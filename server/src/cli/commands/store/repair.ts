// The command `sealpost store repair`: damaged records are set aside, what can be derived is, and what is lost is listed, or fetched from another
// deployment.
import type { Settings } from '../../../config/config.ts';
import { hidePassword } from '../../../runtime/urls.ts';
import { repairStore } from '../../../store/open.ts';
import type { Loss, Repaired, RepairOptions } from '../../../store/repair.ts';
import type { SettingsCommand } from '../../command.ts';
import type { RawOptions } from '../../command-options.ts';
import { parseServerUrl, readUser, userOptions } from '../../credentials.ts';
import { CommandError, exitCodes, interruptedCode } from '../../failure.ts';
import { formatCount, formatMoment, formatNumberOf, withoutControls } from '../../formats.ts';
import { createProgress } from '../../progress.ts';
import { explainRemote } from '../../remote-client.ts';
import type { Session } from '../../session.ts';
import { type Fetched, fetchLost, type LostSpan } from './fetch.ts';

const about = `Stop the server first if the store is in a folder. Nodes on PostgreSQL may be running; restart them afterwards to clear the damage they list. Damaged
records are written to a new file (set-aside-….ndjson, mode 0600) before they are removed: in the store's folder, or for PostgreSQL in
the current one. A record with one flipped bit is recovered; stream numbers, counters and candles are rebuilt. Run the command again to complete an
interrupted repair. The exit code is 1 while something is lost.

--from fetches lost reports from another server, with the credentials of --profile, of SEALPOST_USER_ID and SEALPOST_SECRET, or of the profile
default. Each report is verified against the signer sets of this store.`;

export const repairCommand: SettingsCommand = {
  name: 'repair',
  summary: 'Set damaged records aside, rebuild derived data, and list what is lost.',
  options: [
    { flag: '--from <url>', help: 'fetch lost reports from another server' },
    {
      flag: '--dry-run',
      help: 'show what would be done without changing anything; safe while a server is running',
    },
    { flag: '--json', help: 'print one line of JSON' },
    ...userOptions,
  ],
  settings: ['store', 'verifierThreads'],
  about,
  examples: [
    ['Show what would be lost', 'sealpost store repair --dry-run'],
    ['Fetch lost reports from a replica', 'sealpost store repair --from https://replica.example.com --profile replica'],
  ],
  run: async ({ session, options, settings, print }) => {
    const signal = session.interruption();
    const source = typeof options.from === 'string' ? await openSource(session, options, signal) : undefined;
    const dryRun = options.dryRun === true;
    const outcome = await repairHere(session, settings, { dryRun, signal }, source).catch((error: unknown) => {
      if (signal.aborted)
        throw new CommandError(interruptedCode(signal), 'Interrupted. Run the command again to complete the repair.');
      throw error;
    });
    if (outcome.lost.length > 0 || outcome.left.length > 0) session.exitWith(exitCodes.refused);
    const store = hidePassword(settings.store);
    await print({ store, dryRun, ...outcome }, renderOutcome(session, outcome, dryRun, source === undefined));
  },
};

type Outcome = Repaired & { readonly fetched: Fetched | null };

type Source = Parameters<typeof fetchLost>[0];

/** The other deployment, asked once: a wrong address or secret shows before anything is changed. */
const openSource = async (session: Session, options: RawOptions, signal: AbortSignal): Promise<Source> => {
  const url = parseServerUrl('--from', String(options.from));
  const user = await readUser(session, options, url);
  const client = user.openClient(url, session);
  await explainRemote(url, () => client.feeds({ signal }));
  const warn = (text: string): void => void session.stderr.write(`warning: ${withoutControls(text)}\n`);
  return { client, url, signal, warn };
};

const repairHere = async (
  session: Session,
  values: Settings,
  { dryRun, signal }: Pick<RepairOptions, 'dryRun'> & { readonly signal: AbortSignal },
  source: Source | undefined,
): Promise<Outcome> => {
  const progress = createProgress(session.stderr);
  const run = (more: Partial<RepairOptions> = {}) =>
    repairStore(values.store, {
      dryRun,
      asideFolder: '.',
      nowMs: session.nowMs(),
      signal,
      onProgress: (count, total) =>
        progress.update({ fraction: count / Math.max(1, total), count, label: 'records examined' }),
      ...more,
    });
  try {
    const repaired = await run();
    const spans = repaired.lost.flatMap(spanOf);
    if (source === undefined || dryRun || spans.length === 0) return { ...repaired, fetched: null };
    const fetched = await fetchLost(source, values, spans, (count) =>
      progress.update({ fraction: undefined, count, label: 'reports fetched' }),
    );
    const { lost } = await run({ lossesOnly: true });
    const others = repaired.lost.filter((loss) => spanOf(loss).length === 0);
    return { ...repaired, lost: [...lost, ...others], fetched };
  } finally {
    progress.end();
  }
};

/** The time range of a stream to fetch; none if the loss is not of reports. */
const spanOf = ({ feedId, fromMs, toMs }: Loss): readonly LostSpan[] =>
  feedId === null || fromMs === null || toMs === null ? [] : [{ feedId, fromMs, toMs }];

const renderOutcome = ({ paint }: Session, outcome: Outcome, dryRun: boolean, isOffline: boolean): string => {
  const { file, setAside, rebuilt, lost, left, fetched } = outcome;
  const derived = Object.entries(rebuilt).map(([table, count]) => `${formatCount(count)} of ${table}`);
  if (fetched === null && setAside === 0 && derived.length === 0 && lost.length === 0 && left.length === 0)
    return `${paint.green('No damage found.')}\n`;
  const where = file === null ? '' : `: ${file}`;
  const [put, again] = dryRun ? ['would be set aside', 'would be rebuilt'] : ['set aside', 'rebuilt'];
  const lines = [
    `${formatNumberOf(setAside, 'damaged record')} ${put}${where}.`,
    ...(derived.length > 0 ? [`Records ${again}: ${derived.join(', ')}.`] : []),
    ...(fetched === null ? [] : [renderFetched(fetched)]),
    ...left.map(({ table, key, why }) => `${table} ${withoutControls(key)} is kept: ${why}.`),
    ...(lost.length === 0 ? [paint.green('Nothing is lost.')] : [paint.red('Lost:'), ...lost.map(renderLoss)]),
    ...(lost.some((loss) => spanOf(loss).length > 0) && isOffline
      ? ['Fetch lost reports from another server with: sealpost store repair --from URL.']
      : []),
    ...(dryRun ? ['Nothing was changed.'] : []),
  ];
  return `${lines.join('\n')}\n`;
};

const renderFetched = ({ stored, rejected }: Fetched): string =>
  `${formatNumberOf(stored, 'report')} fetched and stored${rejected === 0 ? '' : `, ${formatCount(rejected)} rejected`}.`;

const renderLoss = ({ table, key, feedId, fromMs, toMs, reports, what }: Loss): string => {
  if (feedId === null || fromMs === null || toMs === null) return `  ${table} ${withoutControls(key)}: ${what}`;
  const count = reports === null ? 'an unknown number of reports' : formatNumberOf(reports, 'report');
  return `  ${feedId}: ${count} from ${formatMoment(fromMs)} to ${formatMoment(toMs)}; ${what}`;
};
