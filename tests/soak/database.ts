// PostgreSQL with a synchronous standby that takes over again and again: the server that was killed comes back as the next standby.
import { type RunningPostgres, rejoinAsStandby, startPostgres, startStandby } from '../support/running-postgres.ts';

export type Database = {
  /** Both servers, of which the primary is wanted. */
  readonly url: string;
  /** kill -9 of the primary; the standby takes its place, and gets a standby of its own. */
  readonly failOver: () => Promise<void>;
  readonly close: () => Promise<void>;
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Commits wait for the standby from now on. */
const waitForStandby = async (primary: RunningPostgres): Promise<void> => {
  const database = primary.connect();
  while ((await database`SELECT 1 FROM pg_stat_replication WHERE application_name = 'standby'`).length === 0)
    await pause(50);
  await database`ALTER SYSTEM SET synchronous_standby_names = 'standby'`;
  await database`SELECT pg_reload_conf()`;
  while ((await database`SELECT sync_state FROM pg_stat_replication`)[0]?.sync_state !== 'sync') await pause(50);
  await database.end();
};

const promote = async (standby: RunningPostgres): Promise<void> => {
  const database = standby.connect();
  await database`SELECT pg_promote(true)`;
  await database.end();
};

export const openDatabase = async (): Promise<Database> => {
  let primary = await startPostgres();
  let standby = await startStandby(primary);
  await waitForStandby(primary);
  const [first, second] = [primary.port, standby.port];
  return {
    url: `postgres://postgres@127.0.0.1:${first},127.0.0.1:${second}/postgres?target_session_attrs=primary`,
    failOver: async () => {
      await primary.kill();
      await promote(standby);
      [primary, standby] = [standby, primary];
      await rejoinAsStandby(standby, primary);
      await waitForStandby(primary);
    },
    close: async () => {
      await standby.stop();
      await primary.stop();
    },
  };
};
