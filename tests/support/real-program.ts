// The real program: a folder with a store, a key and an account, and any command of `sealpost` on it as a child process.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FeedId, formatDate, signRequest } from '@sealpost/protocol';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { requireDocumented } from './openapi-check.ts';
import { act, registerSigners, testStream } from './running-ingest.ts';
import { createSignedReports, secondStream } from './signed-reports.ts';
import { root } from './source-tree.ts';

export type World = {
  readonly folder: string;
  readonly store: string;
  readonly keyFile: string;
  /** Hex, as the file holds it. */
  readonly key: string;
  readonly userId: string;
  readonly secret: string;
  /** A public stream that has a report for every one of the last ten seconds. */
  readonly feedId: FeedId;
  /** Its reports. */
  readonly known: ReadonlyMap<FeedId, readonly StoredReport[]>;
  readonly remove: () => void;
};

/** A store with one stream, its reports and an account that may read it, without limits; in the folder unless an address is given. */
export const createWorld = async (address?: string): Promise<World> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-program-'));
  const [store, keyFile] = [address ?? join(folder, 'store'), join(folder, 'sealpost.key')];
  const key = randomBytes(32);
  writeFileSync(keyFile, `${key.toString('hex')}\n`, { mode: 0o600 });
  const [userId, secret, feedId] = [randomUUID(), randomBytes(32).toString('base64url'), secondStream(1)];
  const { report, signerSets } = await createSignedReports();
  const now = Math.floor(Date.now() / 1_000);
  const createdAt = formatDate(Date.now());
  const sealed = createSecretBox(key).seal(userId, secret);
  const account = {
    userId,
    name: 'reader',
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'first', sealed, createdAt, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: { '*': 0 },
  };
  const opened = await openStore(store, 'write');
  await opened.admin.update('stream', [feedId], () => [testStream(feedId)], act);
  await registerSigners(opened, signerSets);
  await opened.admin.update('account', [userId], () => [account], act);
  const reports = Array.from({ length: 10 }, (_, i) => report(feedId, now - 10 + i, now - 10 + i));
  await opened.reports.append(reports);
  await opened.close();
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return {
    folder,
    store,
    keyFile,
    key: key.toString('hex'),
    userId,
    secret,
    feedId,
    known: new Map([[feedId, reports]]),
    remove,
  };
};

export type Finished = { readonly code: number | null; readonly stdout: string; readonly stderr: string };

export type Program = {
  readonly child: ChildProcess;
  /** Everything printed so far, both streams. */
  readonly output: () => string;
  /** Resolves with the match once either stream has printed it; rejects when the program ends before. */
  readonly printed: (pattern: RegExp) => Promise<RegExpExecArray>;
  readonly finished: Promise<Finished>;
};

/** The command. While tests run, the build is compared with its sources once, and not at each of hundreds of starts. */
export const sealpost = process.env.SEALPOST_BUILT_COMMAND ?? join(root, 'cli/bin/sealpost.js');

/** Starts a command of this release, or of the one whose command is given. `detached` as for `startProgram`. */
export const startCommand = (
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  detached = false,
  command = sealpost,
): Program => startProgram([command, ...args], cwd, env, process.execPath, detached);

/**
 * Starts a program of Node's. Of this process's own environment it gets the path and the home folder, which in tests is an empty one. Detached,
 * it leads a process group of its own, so that `killGroup` reaches what it starts: from the sources, a command is the child of a launcher.
 */
export const startProgram = (
  args: readonly string[],
  cwd: string,
  env: NodeJS.ProcessEnv = {},
  node = process.execPath,
  detached = false,
): Program => {
  const child = spawn(node, args, {
    cwd,
    detached,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  const watchers = new Set<() => void>();
  const tell = (): void => {
    for (const watcher of watchers) watcher();
  };
  child.stdout.on('data', (chunk) => {
    stdout += chunk;
    tell();
  });
  child.stderr.on('data', (chunk) => {
    stderr += chunk;
    tell();
  });
  const finished = new Promise<Finished>((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
  const output = (): string => `${stdout}\n${stderr}`;
  const printed = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(output());
        if (match === null) return;
        watchers.delete(look);
        resolve(match);
      };
      watchers.add(look);
      void finished.then(() => reject(new Error(`Ended without printing ${pattern}: ${output()}`)));
      look();
    });
  return { child, output, printed, finished };
};

/** The process and those that it started: from the sources, a command is the child of a launcher. Linux alone. */
export const processesOf = ({ pid }: ChildProcess): readonly number[] => {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return [Number(pid), ...(children === '' ? [] : children.split(' ').map(Number))];
};

/** Is there a process of this ID? */
export const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Kills a command that leads a process group, with everything that it started. */
export const killGroup = ({ child }: Program): void => {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  process.kill(-child.pid, 'SIGKILL');
};

/** Runs a command to its end. */
export const runCommand = (
  args: readonly string[],
  cwd: string,
  env?: NodeJS.ProcessEnv,
  command?: string,
): Promise<Finished> => startCommand(args, cwd, env, false, command).finished;

export type Server = Program & {
  readonly url: string;
  readonly port: number;
  readonly opsUrl: string;
  /** SIGTERM, and how it ended. */
  readonly stop: () => Promise<Finished>;
};

/** Serves a world on free ports, by this release or the one whose command is given; resolves when it answers. */
export const startServer = async (
  { store, keyFile, folder, command }: Pick<World, 'folder' | 'store' | 'keyFile'> & { readonly command?: string },
  args: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
  detached = false,
): Promise<Server> => {
  const where = ['--store', store, '--key-file', keyFile, '--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const settings = {
    SEALPOST_EVENT_LOOP_LAG_MAX_MS: '60000', // a machine that is busy with other tests must not make this server shed
    SEALPOST_VERIFIER_THREADS: '1', // each takes CPU to start
    ...env,
  };
  const program = startCommand(['serve', '--json', ...where, ...args], folder, settings, detached, command);
  const [, url = '', opsUrl = ''] = await program.printed(/^\{"url":"([^"]+)","opsUrl":"([^"]+)"/m);
  const stop = (): Promise<Finished> => {
    program.child.kill('SIGTERM');
    return program.finished;
  };
  return { ...program, url, port: Number(new URL(url).port), opsUrl, stop };
};

/** A signed GET, with the machine's clock unless another time is given. */
export const fetchSigned = async (
  url: string,
  target: string,
  { userId, secret }: { readonly userId: string; readonly secret: string },
  timestampMs = Date.now(),
): Promise<Response> => {
  const response = await fetch(`${url}${target}`, {
    headers: signRequest({ method: 'GET', target, userId, timestampMs }, secret),
  });
  await requireDocumented('GET', target, response);
  return response;
};
