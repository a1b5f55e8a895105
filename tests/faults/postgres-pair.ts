// A PostgreSQL primary with its standby, behind one address that leads to whichever is the primary.
import { openCuttingProxy } from '../support/proxies/cutting-proxy.ts';
import { type RunningPostgres, startPostgres, startStandby } from '../support/running-postgres.ts';

export type PostgresPair = {
  /** Where the primary is, whichever that is. */
  readonly url: string;
  /** Both servers, of which the primary is wanted. */
  readonly hostsUrl: string;
  /** Takes the standby away from the primary: what is committed from now on, it never hears of. */
  readonly cutOff: () => Promise<void>;
  /** kill -9 of all processes of the primary: whoever is connected is told by the network. */
  readonly kill: () => Promise<void>;
  /** The primary does nothing any more, and nobody is told. */
  readonly silence: () => void;
  /** Makes the standby the primary, and leads new connections there. */
  readonly promote: () => Promise<void>;
  readonly close: () => Promise<void>;
};

/** Opens both. Commits wait for a synchronous standby; one that is not may miss the last of them. */
export const openPostgresPair = async (isSynchronous: boolean): Promise<PostgresPair> => {
  const primary = await startPostgres();
  const standby = await startStandby(primary);
  const proxy = await openCuttingProxy(primary.port);
  const database = primary.connect();
  if (isSynchronous) {
    await database`ALTER SYSTEM SET synchronous_standby_names = 'standby'`;
    await database`SELECT pg_reload_conf()`;
  }
  const wanted = isSynchronous ? 'sync' : 'async';
  while ((await database`SELECT sync_state FROM pg_stat_replication`)[0]?.sync_state !== wanted);
  await database.end();
  let isSilent = false;
  return {
    url: `postgres://postgres@127.0.0.1:${new URL(proxy.url).port}/postgres`,
    hostsUrl: `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres?target_session_attrs=primary`,
    cutOff: () => cutOff(primary, standby),
    kill: async () => {
      isSilent = false;
      await primary.kill();
    },
    silence: () => {
      isSilent = true;
      primary.freeze();
    },
    promote: async () => {
      await promote(standby);
      proxy.upstreamPort = standby.port;
      if (!isSilent) proxy.drop('');
    },
    close: async () => {
      await proxy.close();
      await standby.stop();
      if (isSilent) await primary.kill();
      await primary.stop();
    },
  };
};

const cutOff = async (primary: RunningPostgres, standby: RunningPostgres): Promise<void> => {
  const [here, there] = [primary.connect(), standby.connect()];
  await there`ALTER SYSTEM SET primary_conninfo = ''`;
  await there`SELECT pg_reload_conf()`;
  while ((await here`SELECT 1 FROM pg_stat_replication`).length > 0);
  await Promise.all([here.end(), there.end()]);
};

const promote = async (standby: RunningPostgres): Promise<void> => {
  const database = standby.connect();
  await database`SELECT pg_promote(true)`;
  await database.end();
};
