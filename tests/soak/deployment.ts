// A whole deployment as deploy/ describes it: two nodes on PostgreSQL with a synchronous standby, behind HAProxy; and a second one, restored from a
// backup of the first, with its store on a small disk, which mirrors it and serves TLS by itself.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type FeedId, formatDate } from '@sealpost/protocol';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { openStore } from '../../server/src/store/open.ts';
import { jumpingClock } from '../access/jumping-clock.ts';
import { addStreams } from '../faults/failover.ts';
import { createOperator, type Operator } from '../formats/operator.ts';
import { ingestToken } from '../formats/senders.ts';
import { createCertificate } from '../support/certificates.ts';
import { freePort } from '../support/free-port.ts';
import {
  createWorld,
  killGroup,
  type Program,
  type Server,
  sealpost,
  startCommand,
  startServer,
  type World,
} from '../support/real-program.ts';
import type { Credentials } from '../support/running-api.ts';
import { act } from '../support/running-ingest.ts';
import type { SignedReports } from '../support/signed-reports.ts';
import { readText } from '../support/source-tree.ts';
import { type Database, openDatabase } from './database.ts';

export type Deployment = {
  readonly database: Database;
  /** Its secret changes when it is rotated. */
  readonly world: { -readonly [Name in keyof World]: World[Name] };
  readonly operator: Operator;
  readonly nodes: Server[];
  /** Starts a node again on its ports. */
  readonly startNode: (index: number) => Promise<void>;
  readonly clockFile: string;
  readonly balancer: Balancer;
  readonly second: Second;
  /** An account whose secret stays. */
  readonly steady: Credentials;
  /** Reports near the end of their retention. */
  readonly aging: Aging;
  readonly close: () => Promise<void>;
};

type Balancer = { readonly child: ChildProcess; readonly url: string };

export type Second = {
  readonly server: Server;
  readonly mirror: Program;
  readonly store: string;
  /** The small disk; undefined where it could not be mounted. */
  readonly disk: string | undefined;
  readonly installCertificate: (commonName: string) => void;
};

/** A stream of which reports leave the retention while the soak runs. */
export type Aging = { readonly feedId: FeedId; readonly seconds: readonly number[] };

export type DeploymentPlan = {
  readonly streams: readonly FeedId[];
  readonly agingStream: FeedId;
  /** Nobody reads it; its reports fill disks. */
  readonly ballastStream: FeedId;
  readonly report: SignedReports['report'];
  readonly seconds: number;
  readonly haproxy: string;
};

const retentionDays = 1;
const diskMegabytes = 300;
/** Commands are processes of their own: a backup must not hold up the load. */
export const command = sealpost;
/** Of every statement of the nodes. */
const databaseMs = 15_000;

const nodeArgs = (port: number, opsPort: number): readonly string[] => [
  ...['--listen', `127.0.0.1:${port}`, '--ops-listen', `127.0.0.1:${opsPort}`, '--trusted-proxies', '127.0.0.1'],
  ...['--retention-days', String(retentionDays), '--log-level', 'warn', '--explorer', 'off', '--verifier-threads', '1'],
  ...['--sockets-per-account', '1000'],
];
const env = { SEALPOST_INGEST_TOKEN: ingestToken };

/** Adds an account that may read everything public, without limits. */
const addAccount = async (world: World, name: string): Promise<Credentials> => {
  const [userId, secret] = [randomUUID(), randomBytes(32).toString('base64url')];
  const createdAt = formatDate(Date.now());
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(userId, secret);
  const secrets = [{ id: 'first', sealed, createdAt, revokedAt: null }];
  const account = {
    userId,
    name,
    createdAt,
    disabledAt: null,
    secrets,
    entitlements: ['public'],
    rateLimits: { '*': 0 },
  };
  const store = await openStore(world.store, 'write');
  await store.admin.update('account', [userId], () => [account], act);
  await store.close();
  return { userId, secret };
};

/** Stores a report for every second that will leave the retention during the soak, and for some that will not. */
const addAging = async (world: World, plan: DeploymentPlan): Promise<Aging> => {
  const first = Math.floor(Date.now() / 1_000) - retentionDays * 86_400 + 10;
  const seconds = Array.from({ length: plan.seconds + 600 }, (_, i) => first + i).filter((second) => second % 2 === 0);
  const store = await openStore(world.store, 'write');
  for (let i = 0; i < seconds.length; i += 500)
    await store.reports.append(
      seconds.slice(i, i + 500).map((second) => plan.report(plan.agingStream, second, second)),
    );
  await store.close();
  return { feedId: plan.agingStream, seconds };
};

/** deploy/haproxy.cfg, on ports of this machine. */
const startBalancer = async (
  haproxy: string,
  folder: string,
  ports: readonly (readonly [number, number])[],
): Promise<Balancer> => {
  const [port, figuresPort] = [await freePort(), await freePort()];
  const text = readText('deploy/haproxy.cfg')
    .replace('maxconn 20000', 'maxconn 2000')
    .replace('bind :8080', `bind 127.0.0.1:${port}`)
    .replace('bind :8405', `bind 127.0.0.1:${figuresPort}`)
    .replaceAll(/server node([12]) .*/g, (_, n: string) => {
      const [own, ops] = ports[Number(n) - 1] as readonly [number, number]; // there are two
      return `server node${n} 127.0.0.1:${own} port ${ops}`;
    });
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, text);
  const child = spawn(haproxy, ['-db', '-f', file], { stdio: ['ignore', 'ignore', 'ignore'] });
  const url = `http://127.0.0.1:${port}`;
  while (!(await fetch(`${url}/time`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error(`HAProxy ended with ${child.exitCode}.`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { child, url };
};

/** A disk of its own, which can be filled; undefined without the right to mount one. */
const mountDisk = (folder: string): string | undefined => {
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${diskMegabytes}m`, 'tmpfs', disk], { stdio: 'ignore' });
    return disk;
  } catch {
    return undefined;
  }
};

/** Restores a backup of the first deployment elsewhere, serves it over TLS, and lets it follow the first. */
const startSecond = async (world: World, operator: Operator, source: string, steady: Credentials): Promise<Second> => {
  const disk = mountDisk(world.folder);
  const [backup, store] = [join(world.folder, 'backup'), join(disk ?? world.folder, 'second')];
  const keyFile = join(world.folder, 'second.key');
  cpSync(world.keyFile, keyFile);
  await operator.run(['store', 'backup', backup]);
  await createOperator(world.folder, store, keyFile, command).run(['store', 'restore', backup]);
  const [cert, key] = [join(world.folder, 'chain.pem'), join(world.folder, 'tls-key.pem')];
  const installCertificate = (commonName: string): void => {
    const made = createCertificate(commonName);
    writeFileSync(cert, made.cert);
    writeFileSync(key, made.key, { mode: 0o600 });
  };
  installCertificate('first');
  const args = nodeArgs(await freePort(), await freePort());
  const server = await startServer(
    { folder: world.folder, store, keyFile },
    [...args, '--tls-cert', cert, '--tls-key', key],
    env,
    true,
  );
  const from = String(Math.floor(Date.now() / 1_000) - 60);
  const mirror = startCommand(
    ['follow', source, '--to', server.opsUrl, '--from', from, '--adopt', '--store', store],
    world.folder,
    { ...env, SEALPOST_USER_ID: steady.userId, SEALPOST_SECRET: steady.secret, HOME: world.folder },
    true,
  );
  return { server, mirror, store, disk, installCertificate };
};

export const openDeployment = async (plan: DeploymentPlan): Promise<Deployment> => {
  const database = await openDatabase();
  const world = await createWorld(database.url);
  await addStreams(world, [...plan.streams, plan.agingStream, plan.ballastStream]);
  const [steady, aging] = [await addAccount(world, 'steady'), await addAging(world, plan)];
  const operator = createOperator(world.folder, world.store, world.keyFile, command);
  const clockFile = join(world.folder, 'clock');
  writeFileSync(clockFile, '0');
  const ports = await Promise.all([0, 1].map(async () => [await freePort(), await freePort()] as const));
  const nodes: Server[] = [];
  const startNode = async (index: number): Promise<void> => {
    const [port, opsPort] = ports[index] as readonly [number, number]; // there are two
    // This machine also runs the clients and the rest of the deployment: a slow answer is not to become a failed one.
    const store = `${world.store}&read_ms=${databaseMs}&write_ms=${databaseMs}`;
    nodes[index] = await startServer(
      { ...world, store },
      nodeArgs(port, opsPort),
      { ...env, ...(index === 0 && jumpingClock(clockFile)) },
      true,
    );
  };
  for (const index of ports.keys()) await startNode(index);
  const balancer = await startBalancer(plan.haproxy, world.folder, ports);
  const second = await startSecond(world, operator, balancer.url, steady);
  return {
    database,
    world,
    operator,
    nodes,
    startNode,
    clockFile,
    balancer,
    second,
    steady,
    aging,
    close: () => close({ database, world, nodes, balancer, second }),
  };
};

const close = async ({
  database,
  world,
  nodes,
  balancer,
  second,
}: Pick<Deployment, 'database' | 'world' | 'nodes' | 'balancer' | 'second'>): Promise<void> => {
  for (const program of [second.mirror, second.server, ...nodes]) killGroup(program);
  const ended = once(balancer.child, 'exit');
  balancer.child.kill('SIGTERM');
  await ended;
  await Promise.all([second.mirror, second.server, ...nodes].map(({ finished }) => finished));
  if (second.disk !== undefined) execFileSync('umount', ['-l', second.disk]);
  world.remove();
  await database.close();
};
