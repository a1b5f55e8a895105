// What can lose acknowledged reports although a commit succeeded, or keeps commits waiting: settings of the database, and standbys that are not there (D245).
import { createFailureState } from '../../../runtime/failure-state.ts';
import type { StoreEvent } from '../../store-event.ts';
import type { Run } from '../connection.ts';

const lookEveryMs = 5_000;

type Settings = { readonly fsync: string | null; readonly names: string | null; readonly commit: string | null };
type Standby = { readonly application_name: string | null; readonly sync_state: string | null };

/** `synchronous_standby_names`, taken apart: how many of which standbys confirm a commit. */
const standbysOf = (names: string): { readonly count: number; readonly names: readonly string[] } => {
  const [, count = '1', list = names] = /^\s*(?:first\s+|any\s+)?(\d+)\s*\((.*)\)\s*$/is.exec(names) ?? [];
  return { count: Number(count), names: list.split(',').map((name) => name.trim().replaceAll('"', '').toLowerCase()) };
};

/** Sentences for the operator; none where there is nothing to say. A user without pg_read_all_stats sees of standbys only the names. */
export async function readRisks(run: Run): Promise<readonly string[]> {
  const [settings] = await run<Settings>(
    `SELECT current_setting('fsync', true) AS fsync, current_setting('synchronous_standby_names', true) AS names,
       current_setting('synchronous_commit', true) AS commit`,
  );
  const risks: string[] = [];
  if (settings?.fsync === 'off')
    risks.push('fsync is off in the database, so a crash of its machine loses reports or all of it. Turn it on.');
  // With `local`, commits wait for no standby, as the operator wants it.
  if (!settings?.names || settings.commit === 'local') return risks;
  const wanted = standbysOf(settings.names);
  const isSynchronous = ({ application_name: name, sync_state: state }: Standby): boolean =>
    state === null
      ? wanted.names.includes('*') || wanted.names.includes((name ?? '').toLowerCase())
      : state === 'sync' || state === 'quorum';
  const found = (await run<Standby>('SELECT application_name, sync_state FROM pg_stat_replication')).filter(
    isSynchronous,
  );
  if (found.length < wanted.count)
    risks.push(
      `synchronous_standby_names is ${JSON.stringify(settings.names)}, but ${found.length} of ${wanted.count} synchronous standbys are connected, so commits wait. Start the standby, or take it out of the setting.`,
    );
  return risks;
}

/** Looks now and every 5 s until stopped, and reports when there begins to be a risk, and when there is none. A look that fails says nothing: others report that the database is away. */
export function watchRisks(run: Run, tell: (event: StoreEvent) => void): () => void {
  const report = (reason: string, isNews: boolean): void => tell({ kind: 'durabilityReduced', reason, isNews });
  const state = createFailureState<string>({
    began: (reason) => report(reason, true),
    continued: report,
    ended: (seconds) => tell({ kind: 'durabilityRestored', seconds }),
  });
  const look = (): void =>
    void readRisks(run).then(
      (risks) => (risks.length === 0 ? state.worked() : state.failed(risks.join(' '))),
      () => {},
    );
  look();
  const timer = setInterval(look, lookEveryMs).unref();
  return () => {
    state.close();
    clearInterval(timer);
  };
}
