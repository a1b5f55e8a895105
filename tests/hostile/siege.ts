// One siege: a server, a client that behaves, attackers, and what is left of them afterwards. All attackers run side by side.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { setTimeout } from 'node:timers/promises';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { createEventIds } from '../../server/src/live/event-id.ts';
import { openStore } from '../../server/src/store/open.ts';
import { buildPrograms, type Programs } from '../faults/programs.ts';
import { createCertificate } from '../support/certificates.ts';
import { createWorld, processesOf, startServer, type World } from '../support/real-program.ts';
import { act, testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';
import type { Attacker } from './attackers.ts';
import { bystanderProgram, type Seen, startBystander } from './bystander.ts';
import { createGround, type Ground, type Targets } from './ground.ts';
import { fillStore } from './large-store.ts';

const drainMs = 3_000;
/** How long a server may take to stop, and for how long something of an attack may be left. */
export const promised = { stopMaxMs: drainMs + 2_000, goneMaxMs: 15_000 } as const;

export type Stage = { readonly isTls: boolean; readonly workers: number };

export type Outcome = {
  /** The client's own figures, before the attack and during it. */
  readonly before: Seen;
  readonly during: Seen;
  readonly memoryGrowthMb: number;
  /** Connections of the attack that the server still had when nothing of it should have been left. */
  readonly left: number;
  /** Did the process end in time when it was told to during an attack? */
  readonly stopped: boolean;
};

export type Besieged = {
  readonly child: ChildProcess;
  readonly url: string;
  readonly opsUrl: string;
  readonly world: SiegeWorld;
};

const reports = 150;

export type SiegeWorld = World & {
  readonly attacker: { readonly userId: string; readonly secret: string };
  /** Of an event nearly as far back as a stream may resume. */
  readonly lastEventId: string;
  readonly programs: Programs;
};

/** A store that takes long to read, and a second account: one attacks, the other one is beside it. */
export const createSiegeWorld = async (size: number): Promise<SiegeWorld> => {
  const world = await createWorld();
  const store = await openStore(world.store, 'write');
  const { report } = await createSignedReports();
  const from = Math.floor(Date.now() / 1_000) - 1_000;
  await fillStore(store, world.feedId, size);
  const position = await store.reports.position();
  await store.reports.append(Array.from({ length: reports }, (_, i) => report(world.feedId, from + i, from + i)));
  const { encode } = createEventIds(await store.reports.lineage());
  const attacker = { userId: crypto.randomUUID(), secret: 'a-secret-of-the-attacker' };
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(attacker.userId, attacker.secret);
  const createdAt = '2026-01-01T00:00:00.000000Z';
  const account = {
    userId: attacker.userId,
    name: 'attacker',
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'one', sealed, createdAt, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: { '*': 0 },
  };
  await store.admin.update('account', [attacker.userId], () => [account], act);
  // A client beside the attack asks for the reports of two streams: each must get its own.
  const other = secondStream(2);
  const others = Array.from({ length: 10 }, (_, i) => report(other, from + i, from + i, 2n * 10n ** 18n));
  await store.admin.update('stream', [other], () => [testStream(other)], act);
  await store.reports.append(others);
  await store.close();
  const known = new Map([...world.known, [other, others]]);
  const programs = await buildPrograms([bystanderProgram, 'tests/hostile/control-server.ts']);
  const remove = (): void => {
    programs.remove();
    world.remove();
  };
  const lastEventId = encode(Math.max(1, position + reports - 99_000));
  return { ...world, known, attacker, lastEventId, programs, remove };
};

/** Bounds that a siege reaches: an attack on the defaults, of 16,384 connections and 256 MB, would be one on the machine. */
const bounds = [
  ...['--drain-ms', String(drainMs), '--log-level', 'silent', '--connections-max', '800', '--skew-max-ms', '60000'],
  ...['--connections-per-address', '600', '--unread-bytes-max', '67108864', '--unread-bytes-per-account', '33554432'],
];

export const startBesieged = async (world: SiegeWorld, { isTls, workers }: Stage): Promise<Besieged> => {
  const [cert, key] = ['chain.pem', 'tls-key.pem'].map((name) => join(world.folder, name)) as [string, string]; // two names
  if (isTls) {
    const made = createCertificate('besieged');
    writeFileSync(cert, made.cert);
    writeFileSync(key, made.key, { mode: 0o600 });
  }
  const tls = isTls ? ['--tls-cert', cert, '--tls-key', key] : [];
  const { child, url, opsUrl } = await startServer(world, [...bounds, ...tls, '--workers', String(workers)]);
  return { child, url, opsUrl, world };
};

/** The server without defenses. */
export const startControl = async (world: SiegeWorld, { isTls }: Stage): Promise<Besieged> => {
  const args = [world.store, ...(isTls ? ['tls'] : [])];
  const child = world.programs.start('control-server', args);
  const [line] = await once(child.stdout as Readable, 'data'); // piped
  const { port, opsPort } = JSON.parse(String(line)) as Record<'port' | 'opsPort', number>;
  return {
    child,
    url: `${isTls ? 'https' : 'http'}://127.0.0.1:${port}`,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    world,
  };
};

const socketsOf = (child: ChildProcess): number =>
  processesOf(child).reduce((sum, pid) => {
    const links = readdirSync(`/proc/${pid}/fd`).map((name) => readLink(`/proc/${pid}/fd/${name}`));
    return sum + links.filter((link) => link.startsWith('socket:')).length;
  }, 0);

/** A descriptor may be closed while it is looked at. */
const readLink = (path: string): string => {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
};

const memoryMbOf = (child: ChildProcess): number =>
  processesOf(child).reduce((sum, pid) => {
    const [, kilobytes = '0'] = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return sum + Number(kilobytes) / 1_024;
  }, 0);

const targetsOf = (feedId: string): Targets => {
  const now = Math.floor(Date.now() / 1_000);
  return {
    latest: `/api/v1/reports/latest?feedID=${feedId}`,
    page: `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${now - 1_100}&limit=1000`,
    socket: `/api/v1/ws?feedIDs=${feedId}`,
    events: `/api/v1/reports/stream?feedIDs=${feedId}`,
    expensive: [
      `/api/v1/reports/candles?feedID=${feedId}&resolution=3600&from=${now - 29 * 86_400}&to=${now}`,
      `/api/v1/reports/candles/bulk?feedIDs=${feedId}&resolution=900&from=${now - 14 * 86_400}&to=${now}`,
      `/api/v1/reports/coverage?feedID=${feedId}&from=${now - 86_400}&to=${now}`,
      `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${now - 29 * 86_400}&limit=1000`,
    ],
  };
};

export type Attack = {
  readonly attackers: readonly Attacker[];
  /** Of each. */
  readonly count: number;
  readonly attackMs: number;
  readonly stopMaxMs: number;
  readonly goneMaxMs: number;
};
type Account = { readonly userId: string; readonly secret: string };

const begin = ({ url, opsUrl, world }: Besieged, account: Account, { attackers, count }: Attack): Ground => {
  const ground = createGround({
    port: Number(new URL(url).port),
    opsPort: Number(new URL(opsUrl).port),
    isTls: url.startsWith('https'),
    address: '127.0.0.66',
    account,
    targets: targetsOf(world.feedId),
    lastEventId: world.lastEventId,
  });
  for (const { attack } of attackers) for (let i = 0; i < count; i++) attack(ground, i);
  return ground;
};

/** Is the condition met in time? Looked at four times a second. */
const holdsWithin = async (ms: number, holds: () => boolean): Promise<boolean> => {
  for (const end = performance.now() + ms; performance.now() < end; await setTimeout(250)) if (holds()) return true;
  return holds();
};

/** Attacks a server, and sees what becomes of a client beside it, of its memory, of the attack's connections, and of the process. */
export const besiege = async (besieged: Besieged, attacker: Account, attack: Attack): Promise<Outcome> => {
  const { child, url, world } = besieged;
  const bystander = startBystander(world.programs, url, world.known, world);
  const before = await bystander.watch(2_000);
  await holdsWithin(2_000, () => false); // the client's own connection is gone
  const [memory, sockets] = [memoryMbOf(child), socketsOf(child)];
  let most = memory;
  const ground = begin(besieged, attacker, attack);
  const meter = setInterval(() => {
    most = Math.max(most, memoryMbOf(child));
  }, 250);
  const during = await bystander.watch(attack.attackMs);
  bystander.close();
  ground.stop();
  await holdsWithin(attack.goneMaxMs, () => socketsOf(child) <= sockets);
  clearInterval(meter);
  const left = Math.max(0, socketsOf(child) - sockets);
  ground.close();
  const again = begin(besieged, attacker, attack);
  await setTimeout(1_000);
  const ended = once(child, 'exit').then(() => true);
  child.kill('SIGTERM');
  const stopped = await Promise.race([ended, setTimeout(attack.stopMaxMs, false, { ref: false })]);
  if (!stopped) child.kill('SIGKILL');
  await ended;
  again.stop();
  again.close();
  return { before, during, memoryGrowthMb: Math.round(most - memory), left, stopped };
};
