// What happens to a deployment in a week, one row each: what is done, and which failures the documents allow meanwhile.
import { mkdtempSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { type FeedId, toReportJson } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import type { Acknowledged } from '../faults/node-load.ts';
import { createOperator } from '../formats/operator.ts';
import { sendLines } from '../formats/senders.ts';
import { attackers } from '../hostile/attackers.ts';
import { createGround } from '../hostile/ground.ts';
import { killGroup, processesOf, type Server } from '../support/real-program.ts';
import type { SignedReports } from '../support/signed-reports.ts';
import type { Clients } from './clients.ts';
import { command, type Deployment } from './deployment.ts';
import { cutAnswer, stoppedNode, withoutDatabase, wrongClock } from './documented-failures.ts';
import type { Allowance } from './failures.ts';
import { copyOf, countMissing, sizeOf } from './ledger.ts';

/** What events act on. */
export type Scene = {
  readonly deployment: Deployment;
  readonly clients: Clients;
  readonly acknowledged: Acknowledged;
  /** Gives the reports from now on a new set of signers, and returns how to retire the old one. */
  readonly renewSigners: () => Promise<{ readonly file: unknown; readonly use: () => string }>;
  readonly report: SignedReports['report'];
  readonly stream: FeedId;
  /** A stream that fills disks, with the next seconds that it has no report of. */
  readonly ballast: { readonly feedId: FeedId; readonly take: (count: number) => readonly number[] };
  /** Counts what an event found. */
  readonly count: (name: string, value: number) => void;
};

export type SoakEvent = {
  readonly act: (scene: Scene) => Promise<void>;
  /** What the documents allow to fail meanwhile. */
  readonly allows?: readonly Allowance[];
  /** Whether it can be done here. */
  readonly isPossible?: (deployment: Deployment) => boolean;
};

/** How long a node is away, or has a wrong clock. */
const awayMs = 2_000;
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** For what takes a moment, and may take minutes on a machine that has much else to do. */
const waitUntil = async (isDone: () => Promise<boolean>, otherwise: string): Promise<void> => {
  const end = performance.now() + 300_000;
  while (!(await isDone())) {
    if (performance.now() > end) throw new Error(otherwise);
    await pause(100);
  }
};

const expectTrue = (isTrue: boolean, message: string): void => {
  if (!isTrue) throw new Error(message);
};

const restart = async ({ deployment: { nodes, startNode } }: Scene): Promise<void> => {
  const { code } = await (nodes[0] as Server).stop(); // there are two
  expectTrue(code === 0, `A node that was asked to stop ended with ${code}.`);
  await startNode(0);
};

const kill = async ({ deployment: { nodes, startNode } }: Scene): Promise<void> => {
  const node = nodes[0] as Server; // there are two
  killGroup(node);
  await node.finished;
  await pause(awayMs);
  await startNode(0);
};

const shownName = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once('error', reject);
  });

const renewCertificate = async ({ deployment: { second } }: Scene): Promise<void> => {
  const name = `renewed ${Date.now()}`;
  second.installCertificate(name);
  for (const pid of processesOf(second.server.child).slice(-1)) process.kill(pid, 'SIGHUP');
  await waitUntil(async () => (await shownName(second.server.port)) === name, 'A renewed certificate is not shown.');
};

const rotateSecret = async ({ deployment: { world, operator }, clients }: Scene): Promise<void> => {
  const shown = (await operator.runJson('account', 'show', world.userId)) as {
    secrets: { id: string; revokedAt: string | null }[];
  };
  const old = shown.secrets.filter(({ revokedAt }) => revokedAt === null).map(({ id }) => id);
  const added = (await operator.runJson('secret', 'add', world.userId)) as { secret: string };
  await pause(2_000); // within a second everywhere
  world.secret = added.secret;
  clients.use({ userId: world.userId, secret: added.secret });
  await pause(8_000); // clients ask for their secret every five seconds
  for (const id of old) await operator.run(['secret', 'revoke', world.userId, id]);
};

const rotateKey = async ({ deployment: { world, operator } }: Scene): Promise<void> => {
  const next = join(world.folder, 'next.key');
  await operator.run(['secret', 'rewrap', '--new-key-file', next]);
  renameSync(next, world.keyFile);
};

const rotateSigners = async ({ deployment: { world, operator }, renewSigners }: Scene): Promise<void> => {
  const { file, use } = await renewSigners();
  const path = join(world.folder, 'signers.json');
  writeFileSync(path, JSON.stringify(file));
  await operator.run(['signers', 'import', path]);
  await pause(2_000); // within a second everywhere
  const old = use();
  await pause(5_000); // what the old ones signed is stored
  await operator.run(['signers', 'retire', old]);
};

const backUp = async ({ deployment, acknowledged, count }: Scene): Promise<void> => {
  const before = copyOf(acknowledged);
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-soak-backup-'));
  const [backup, restored] = [join(folder, 'backup'), join(folder, 'restored')];
  try {
    await deployment.operator.run(['store', 'backup', backup]);
    await createOperator(folder, restored, deployment.world.keyFile, command).run(['store', 'restore', backup]);
    const store = await openStore(restored, 'read');
    count('reports in backups', sizeOf(before));
    count('of these not in them', await countMissing(store.reports, before));
    await store.close();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

/** Stores reports of a stream that nobody reads until there is no page left for them: pages of the store that are free are used first. */
const useUpPages = async ({ deployment: { second }, report, ballast }: Scene): Promise<void> => {
  const isFull = (results: Readonly<Record<string, number>>): boolean =>
    Object.keys(results).some((result) => result.includes('store_'));
  for (let batch = 0; batch < 1_000; batch++) {
    const lines = ballast.take(250).map((second) => {
      const one = report(ballast.feedId, second, second);
      const fullReport = `0x${Buffer.from(one.fullReport).toString('hex')}` as const;
      return JSON.stringify(toReportJson(ballast.feedId, one, fullReport));
    });
    if (isFull(await sendLines(second.server, lines))) return;
  }
  throw new Error('A full disk takes any number of reports.');
};

/** Fills the disk of the second deployment, sees that it says so, and frees it. */
const fillDisk = async (scene: Scene): Promise<void> => {
  const { second } = scene.deployment;
  const disk = second.disk as string; // it is possible only with one
  const ballast = join(disk, 'ballast');
  const isReady = async (): Promise<boolean> => (await fetch(`${second.server.opsUrl}/readyz`)).ok;
  const { bavail, bsize } = statfsSync(disk);
  writeFileSync(ballast, Buffer.alloc(bavail * bsize));
  try {
    await useUpPages(scene);
    await waitUntil(async () => !(await isReady()), 'A full disk does not show in /readyz.');
  } finally {
    rmSync(ballast);
  }
  await waitUntil(isReady, 'Writing does not resume on a disk that was freed.');
};

/** The clock of a node is 30 s ahead for a while. */
const jumpClock = async ({ deployment: { nodes, clockFile } }: Scene): Promise<void> => {
  const jumpTo = (ms: number): void => {
    writeFileSync(clockFile, String(ms));
    for (const pid of processesOf((nodes[0] as Server).child)) process.kill(pid, 'SIGUSR2'); // there are two
  };
  jumpTo(30_000);
  await pause(awayMs);
  jumpTo(0);
};

/** Two signed reports for the same time of a stream. */
const sendConflict = async (scene: Scene): Promise<void> => {
  const { deployment, report, stream, acknowledged, count } = scene;
  const second = Math.max(...(acknowledged.get(stream)?.keys() ?? []));
  const other = report(stream, second, second, 7n);
  const fullReport = `0x${Buffer.from(other.fullReport).toString('hex')}` as const;
  const results = await sendLines(deployment.nodes[1] as Server, [
    JSON.stringify(toReportJson(stream, other, fullReport)),
  ]); // there are two
  expectTrue(results.refused === 1, `A conflicting report was not rejected: ${JSON.stringify(results)}`);
  count('conflicting reports', 1);
};

/** Attackers beside the clients, on the node that stays. */
const attack = async ({ deployment: { nodes, steady, world }, stream }: Scene): Promise<void> => {
  const { port, opsUrl } = nodes[1] as Server; // there are two
  const page = `/api/v1/reports/page?feedID=${stream}&startTimestamp=${Math.floor(Date.now() / 1_000) - 60}&limit=1000`;
  const ground = createGround({
    port,
    opsPort: Number(new URL(opsUrl).port),
    isTls: false,
    address: '127.0.0.66',
    account: steady,
    targets: {
      latest: `/api/v1/reports/latest?feedID=${world.feedId}`,
      page,
      socket: `/api/v1/ws?feedIDs=${stream}`,
      events: `/api/v1/reports/stream?feedIDs=${stream}`,
      expensive: [page],
    },
    lastEventId: '',
  });
  for (const { attack: begin, on, name } of attackers)
    if (on !== 'tls' && !name.startsWith('resumes')) begin(ground, 0);
  await pause(5_000);
  ground.stop();
  ground.close();
};

export const soakEvents = {
  restart: { act: restart, allows: [stoppedNode] },
  kill: { act: kill, allows: [stoppedNode, cutAnswer] },
  'fail-over': { act: ({ deployment }) => deployment.database.failOver(), allows: [withoutDatabase] },
  certificate: { act: renewCertificate },
  secret: { act: rotateSecret },
  key: { act: rotateKey },
  signers: { act: rotateSigners },
  backup: { act: backUp },
  'full disk': { act: fillDisk, isPossible: ({ second }) => second.disk !== undefined },
  clock: { act: jumpClock, allows: [wrongClock] },
  conflict: { act: sendConflict },
  hostile: { act: attack },
} as const satisfies Readonly<Record<string, SoakEvent>>;

export type EventName = keyof typeof soakEvents;
