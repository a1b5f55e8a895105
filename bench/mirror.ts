// An hour of the simulated network, caught up by `sealpost follow`, beside the ingest of the same reports from a file on the same cores: real
// programs, by turns in one run. CPU is that of every process that takes part, from /proc, so this workload needs Linux.
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { toSignerSetsJson } from '@sealpost/protocol';
import { createSimulation } from '@sealpost/simulator';
import { createSecretBox } from '../server/src/access/secrets.ts';
import { openStore } from '../server/src/store/open.ts';
import { act } from '../tests/support/running-ingest.ts';
import type { Measurement } from './measure.ts';
import { printProfile, profileFlags } from './processes/profile.ts';

const sealpost = fileURLToPath(new URL('../server/bin/sealpost.js', import.meta.url));
const seconds = Number(process.env.SEALPOST_MIRROR_SECONDS ?? 3_600);
const rounds = 2;
const token = 'a-token-of-the-bench';

type World = {
  readonly folder: string;
  readonly lines: number;
  readonly from: number;
  readonly env: NodeJS.ProcessEnv;
  readonly key: Buffer;
};

/** Writes the hour as files. */
const createWorld = async (): Promise<World> => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-mirror-bench-'));
  const { network, streams, deliverAt } = await createSimulation({ seed: 'bench' });
  const from = Math.floor(Date.now() / 1_000) - seconds - 1_800; // so far back that the ends of the runs are the same
  // What the mirror's account may read, so that all of it arrives.
  const read = new Set<string>(streams.flatMap(({ stream }) => (stream.hidden ? [] : [stream.feedId])));
  const lines = Array.from({ length: seconds }, (_, i) =>
    [...deliverAt(from + i)].flatMap(({ report }) => (read.has(report.feedID) ? [JSON.stringify(report)] : [])),
  ).flat();
  writeFileSync(join(folder, 'hour.ndjson'), `${lines.join('\n')}\n`);
  writeFileSync(join(folder, 'catalog.json'), JSON.stringify({ feeds: streams.map(({ stream }) => stream) }));
  const signers = toSignerSetsJson(new Map([[network.signerSet.configDigest, network.signerSet]]));
  writeFileSync(join(folder, 'signers.json'), JSON.stringify(signers));
  const key = randomBytes(32);
  writeFileSync(join(folder, 'key'), key.toString('hex'), { mode: 0o600 });
  const [userId, secret] = [randomUUID(), randomBytes(24).toString('base64url')];
  const env = { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret, SEALPOST_INGEST_TOKEN: token };
  return { folder, lines: lines.length, from, env, key };
};

const start = ({ folder, env }: World, args: readonly string[]): ChildProcess => {
  const title = `sealpost ${args[0]}${args.includes('--to') ? ' --to' : ''}`;
  const child = spawn(process.execPath, [...profileFlags(title), sealpost, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  printProfile(title, child);
  return child;
};

const run = (world: World, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    const child = start(world, args);
    child.stdout?.resume();
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${args.join(' ')} ended with ${code}`))));
  });

const stop = async (child: ChildProcess): Promise<void> => {
  const ended = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await ended;
};

/** Seconds of CPU that a process has used, its threads included. */
const cpuSecondsOf = ({ pid }: ChildProcess): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / 100; // clock ticks of 10 ms
};

type Rate = { readonly perSecond: number; readonly cpuPerReport: number };

/** From the first result to the last, of a command that prints one line for each report. */
const measure = async (world: World, command: ChildProcess, others: readonly ChildProcess[]): Promise<Rate> => {
  const all = [command, ...others];
  const cpu = () => all.reduce((sum, child) => sum + cpuSecondsOf(child), 0);
  let [count, firstMs, firstCpu] = [0, 0, 0];
  for await (const line of createInterface({ input: command.stdout as NodeJS.ReadableStream })) {
    if (!line.includes('"result":"stored"')) continue;
    count += 1;
    if (count === 1) [firstMs, firstCpu] = [performance.now(), cpu()];
    if (count === world.lines) break;
  }
  const took = (performance.now() - firstMs) / 1_000;
  return { perSecond: count / took, cpuPerReport: ((cpu() - firstCpu) * 1_000_000) / count };
};

/** A store with streams and signers, and an account that may read it. */
const createStore = async (world: World, name: string): Promise<string> => {
  const store = join(world.folder, name);
  await run(world, ['stream', 'import', 'catalog.json', '--store', store]);
  await run(world, ['signers', 'import', 'signers.json', '--store', store]);
  const opened = await openStore(store, 'read');
  const { SEALPOST_USER_ID: userId = '', SEALPOST_SECRET: secret = '' } = world.env;
  const sealed = createSecretBox(world.key).seal(userId, secret);
  const account = {
    userId,
    name: 'mirror',
    createdAt: '2026-01-01T00:00:00.000000Z',
    disabledAt: null,
    secrets: [{ id: '1', sealed, createdAt: '2026-01-01T00:00:00.000000Z', revokedAt: null }],
    entitlements: ['public'],
    rateLimits: {},
  };
  await opened.admin.update('account', [userId], () => [account], act);
  await opened.close();
  return store;
};

const serve = async (world: World, store: string) => {
  const listen = ['--listen', '127.0.0.1:0', '--ops-listen', '127.0.0.1:0'];
  const child = start(world, [
    'serve',
    '--json',
    '--store',
    store,
    '--key-file',
    'key',
    ...listen,
    '--log-level',
    'error',
  ]);
  for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
    const [, url, opsUrl] = /^\{"url":"([^"]+)","opsUrl":"([^"]+)"/.exec(line) ?? [];
    if (url === undefined || opsUrl === undefined) continue;
    child.stdout?.resume();
    return { child, url, opsUrl };
  }
  throw new Error('The server did not start.');
};

const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

export const benchMirror = async (): Promise<readonly Measurement[]> => {
  const world = await createWorld();
  const rates = { ingest: [] as Rate[], follow: [] as Rate[], to: [] as Rate[] };
  try {
    for (let round = 0; round < rounds; round += 1) {
      const source = await createStore(world, `source-${round}`);
      const ingest = start(world, ['ingest', 'hour.ndjson', '--json', '--store', source]);
      rates.ingest.push(await measure(world, ingest, []));
      await new Promise((resolve) => (ingest.exitCode === null ? ingest.once('exit', resolve) : resolve(0)));
      const from = await serve(world, source);
      const args = ['follow', from.url, '--from', String(world.from), '--json'];
      const copy = await createStore(world, `copy-${round}`);
      const follow = start(world, [...args, '--store', copy]);
      rates.follow.push(await measure(world, follow, [from.child]));
      await stop(follow);
      const target = await serve(world, await createStore(world, `target-${round}`));
      const sending = start(world, [...args, '--to', target.opsUrl]);
      rates.to.push(await measure(world, sending, [from.child, target.child]));
      for (const child of [sending, target.child, from.child]) await stop(child);
    }
  } finally {
    rmSync(world.folder, { recursive: true, force: true });
  }
  const perSecond = (name: keyof typeof rates) => mean(rates[name].map((rate) => rate.perSecond));
  const cpu = (name: keyof typeof rates) => mean(rates[name].map((rate) => rate.cpuPerReport));
  const note = `${world.lines} reports, ${rounds} rounds`;
  return [
    { name: 'ingest from a file', value: perSecond('ingest'), unit: 'reports/s', note },
    { name: 'catch-up into a store', value: perSecond('follow'), unit: 'reports/s' },
    { name: 'catch-up into a running server', value: perSecond('to'), unit: 'reports/s' },
    { name: 'catch-up into a store to ingest', value: perSecond('follow') / perSecond('ingest'), unit: 'ratio' },
    { name: 'catch-up into a server to ingest', value: perSecond('to') / perSecond('ingest'), unit: 'ratio' },
    { name: 'ingest, CPU', value: cpu('ingest'), unit: 'µs/report' },
    { name: 'catch-up into a store, CPU of both sides', value: cpu('follow'), unit: 'µs/report' },
    { name: 'catch-up into a server, CPU of all sides', value: cpu('to'), unit: 'µs/report' },
  ];
};
