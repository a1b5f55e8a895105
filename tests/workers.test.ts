// The real program with workers: several processes behind one port, on one store, with one limit.
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { signRequest } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSecretBox } from '../server/src/access/secrets.ts';
import { openStore } from '../server/src/store/open.ts';
import { createCertificate } from './support/certificates.ts';
import { freePort } from './support/free-port.ts';
import { inFull } from './support/full-count.ts';
import {
  createWorld,
  isAlive,
  type Program,
  runCommand,
  type Server,
  startCommand,
  startServer,
  type World,
} from './support/real-program.ts';
import { act } from './support/running-ingest.ts';
import { createSignedReports } from './support/signed-reports.ts';

const { report } = await createSignedReports();
const ingestToken = 'token-of-the-tests';
// A busy machine must not make a worker shed what a test counts.
const twoWorkers = ['--workers', '2', '--verifier-threads', '1', '--ahead-max-ms', '600000'];

type Credentials = { readonly userId: string; readonly secret: string };

let world: World;
let limited: Credentials;
let server: Server;
let latest: string;
let observations: number;
let startedAtMs: number;

beforeAll(async () => {
  world = await createWorld();
  latest = `/api/v1/reports/latest?feedID=${world.feedId}`;
  startedAtMs = Date.now();
  observations = Math.floor(startedAtMs / 1_000);
  limited = await addLimitedAccount();
  const noting = `--import=${notingModule()}`;
  server = await serve(['--key-file', '/nowhere'], { SEALPOST_KEY: world.key, NODE_OPTIONS: noting });
});
afterAll(async () => {
  await server?.stop();
  world.remove();
});

/** A line for each message that tells a worker of stored reports: the worker's pid. */
const toldFile = (): string => join(world.folder, 'told');

/** A module that every process of the server loads first; only workers get messages. */
const notingModule = (): string => {
  const file = JSON.stringify(toldFile());
  const text = `import { appendFileSync } from 'node:fs';
    process.on('message', (message) => {
      if (message?.kind === 'appended') appendFileSync(${file}, process.pid + '\\n');
    });`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
};

const serve = (flags: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<Server> =>
  startServer(world, [...twoWorkers, ...flags], { SEALPOST_INGEST_TOKEN: ingestToken, ...env });

/** An account beside the world's own, which has no limits. */
const addLimitedAccount = async (): Promise<Credentials> => {
  const [userId, secret, createdAt] = [randomUUID(), 'secret of the limited one', '2026-01-01T00:00:00.000000Z'];
  const sealed = createSecretBox(Buffer.from(world.key, 'hex')).seal(userId, secret);
  const account = {
    userId,
    name: 'limited',
    createdAt,
    disabledAt: null,
    secrets: [{ id: 'one', sealed, createdAt, revokedAt: null }],
    entitlements: ['public'],
    rateLimits: { '*': 10 },
  };
  const store = await openStore(world.store, 'write');
  await store.admin.update('account', [userId], () => [account], act);
  await store.close();
  return { userId, secret };
};

type Got = { readonly status: number; readonly text: string; readonly requestId: string };

/** A signed GET, over the agent's connections or one of its own. */
const get = (
  { url }: Server,
  target: string,
  { userId, secret }: Credentials = world,
  agent: Agent | false = false,
): Promise<Got> =>
  new Promise((resolve, reject) => {
    const headers = { ...signRequest({ method: 'GET', target, userId, timestampMs: Date.now() }, secret) };
    const begin = url.startsWith('https:') ? httpsRequest : httpRequest;
    const request = begin(`${url}${target}`, { headers, agent, rejectUnauthorized: false }, (response) => {
      const requestId = String(response.headers['x-request-id']);
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, text, requestId })).on('error', reject);
    });
    request.on('error', reject).end();
  });

/** Sends the next report to the private listener; resolves with its moment when it is acknowledged. */
const ingestNext = async (): Promise<number> => {
  observations += 1;
  const { fullReport } = report(world.feedId, observations, observations);
  const body = `${JSON.stringify({ fullReport: `0x${Buffer.from(fullReport).toString('hex')}` })}\n`;
  const headers = { Authorization: `Bearer ${ingestToken}` };
  const answer = await fetch(`${server.opsUrl}/ingest`, { method: 'POST', headers, body });
  expect(await answer.text()).toContain('"result":"stored"');
  return observations;
};
const momentOf = ({ text }: Got): number => JSON.parse(text).report?.observationsTimestamp;

/** The pids of the workers: those that write of requests. */
const workerPids = ({ output }: Server): readonly number[] => [
  ...new Set([...output().matchAll(/"pid":(\d+),"event":"request"/g)].map(([, pid]) => Number(pid))),
];
const primaryPid = ({ output }: Server): number => Number(/"pid":(\d+),"event":"started"/.exec(output())?.[1]);
/** Looks again and again until it holds; the time-out of the test is the bound. */
const until = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 20));
};
/** Asks over connections of their own until so many workers have written of it. */
const reach = (server: Server, count: number): Promise<void> =>
  until(async () => {
    await Promise.allSettled(Array.from({ length: 4 }, () => get(server, '/time')));
    return workerPids(server).length >= count;
  });
const requestsTotal = async ({ opsUrl }: Server): Promise<number> => {
  const text = await (await fetch(`${opsUrl}/metrics`)).text();
  const counts = [...text.matchAll(/^sealpost_http_server_request_duration_seconds_count\{.*\} (\d+)$/gm)];
  return counts.reduce((sum, [, count]) => sum + Number(count), 0);
};

test('workers: the primary tells every worker of stored reports', async () => {
  const told = (): number => new Set(readFileSync(toldFile(), 'utf8').trim().split('\n')).size;
  await ingestNext();
  await until(() => existsSync(toldFile()) && told() === 2);
});

test('workers: a report is readable in every worker as soon as it is acknowledged', async () => {
  const requestIds = new Set<string>();
  for (let round = 0; round < 20; round++) {
    const newest = await ingestNext();
    const answers = await Promise.all(Array.from({ length: 6 }, () => get(server, latest)));
    expect(answers.map(momentOf)).toEqual(answers.map(() => newest));
    for (const { requestId } of answers) requestIds.add(requestId);
  }
  const workers = (): number => {
    const requests = [...server.output().matchAll(/"pid":(\d+),"event":"request","requestId":"([^"]+)"/g)];
    return new Set(requests.filter(([, , id = '']) => requestIds.has(id)).map(([, pid]) => pid)).size;
  };
  await expect.poll(workers).toBe(2);
  expect((await fetch(`${server.opsUrl}/readyz`)).status).toBe(200);
});

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

test('workers: the key is in no argument and no line of the log, and every line is whole', async () => {
  const answers = await Promise.all(Array.from({ length: 50 }, () => get(server, latest)));
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  await reach(server, 2);
  const broken = (): readonly string[] =>
    server
      .output()
      .trim()
      .split('\n')
      .filter((line) => !isJson(line));
  await expect.poll(broken).toEqual([]); // the rest of the last line may be on its way
  expect(server.output()).not.toContain(world.key);
  if (!existsSync('/proc/self/cmdline')) return; // where there is none, the log alone is looked at
  for (const pid of workerPids(server)) expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.toContain(world.key);
});

test('workers: an account gets its limit once, not once from each worker', async () => {
  const startedMs = performance.now();
  let [accepted, lost, askedMs] = [0, 0, startedMs];
  for (let elapsedMs = 0; elapsedMs < 3_000; elapsedMs = askedMs - startedMs) {
    const answers = await Promise.all(Array.from({ length: 4 }, () => get(server, latest, limited)));
    accepted += answers.filter(({ status }) => status === 200).length;
    expect(answers.every(({ status }) => status === 200 || status === 429)).toBe(true);
    // What refills while a busy machine takes its time, beyond what is asked for next, is not there to be given.
    lost += Math.max(0, ((performance.now() - askedMs) / 1_000) * 10 - 4);
    askedMs = performance.now();
    await new Promise((resolve) => setTimeout(resolve, 80)); // 50 requests a second are enough to ask for
  }
  const fair = 10 + ((askedMs - startedMs) / 1_000) * 10;
  expect(accepted).toBeGreaterThanOrEqual(fair - lost - 5);
  // Until a worker hears of what the other one gave, it may give as much again, a bucket at most; each with its own limit, they give twice.
  expect(accepted).toBeLessThanOrEqual(fair + 10);
});

test('workers: one that is killed is replaced, no total goes back, and the writer goes on', async () => {
  await reach(server, 2);
  const before = await requestsTotal(server);
  process.kill(workerPids(server)[0] as number, 'SIGKILL'); // two have written
  await server.printed(/"code":"worker_ended"/);
  const metrics = async (): Promise<string> => (await fetch(`${server.opsUrl}/metrics`)).text();
  await expect.poll(metrics).toContain('total{code="worker_ended"} 1\n'); // the text of up to 100 ms ago is sent again
  expect(await requestsTotal(server)).toBeGreaterThanOrEqual(before);
  const newest = await ingestNext();
  expect(momentOf(await get(server, latest))).toBe(newest);
  await reach(server, 3);
  expect(await requestsTotal(server)).toBeGreaterThan(before);
  expect(workerPids(server).filter(isAlive)).toHaveLength(2);
});

/** The workers of a program that is starting, by the process table. */
const workersOf = ({ child }: Program): readonly number[] => {
  const listed = execFileSync('ps', ['-e', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const rows = listed.flatMap((line) => {
    const [, pid, parent, args = ''] = /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined ? [] : [{ pid: Number(pid), parent: Number(parent), args }];
  });
  const family = new Set([child.pid]);
  for (const _ of rows) for (const { pid, parent } of rows) if (family.has(parent)) family.add(pid);
  return rows.filter(({ pid, args }) => family.has(pid) && args.includes('cluster/worker')).map(({ pid }) => pid);
};

test('workers: one that ends while the others are still starting is replaced too', async () => {
  const other = await createWorld();
  const port = await freePort();
  const listen = ['--listen', `127.0.0.1:${port}`, '--ops-listen', '127.0.0.1:0'];
  const places = ['--store', other.store, '--key-file', other.keyFile];
  const program = startCommand(['serve', ...twoWorkers, ...listen, ...places], other.folder);
  try {
    await until(() => workersOf(program).length === 2);
    const [slow, quick] = workersOf(program) as [number, number]; // two of them
    process.kill(slow, 'SIGSTOP');
    await until(() =>
      fetch(`http://127.0.0.1:${port}/time`).then(
        ({ ok }) => ok,
        () => false,
      ),
    );
    process.kill(quick, 'SIGKILL');
    await until(() => !isAlive(quick));
    process.kill(slow, 'SIGCONT');
    await program.printed(/"event":"started"/);
    await until(() => workersOf(program).length === 2);
  } finally {
    program.child.kill('SIGTERM');
    await program.finished;
    other.remove();
  }
});

test('workers: a port that is taken ends the command with a line that says so', async () => {
  const other = await createWorld();
  const listen = ['--listen', new URL(server.url).host];
  await expect(startServer(other, [...twoWorkers, ...listen])).rejects.toThrow(
    `error: Another program is using ${new URL(server.url).host}. Stop it`,
  );
  other.remove();
});

test.skipIf(!existsSync('/usr/bin/prlimit'))(
  'workers: one without descriptors says so in the log and the probe, and no longer once there are some',
  async () => {
    const args = ['--pid', String(workerPids(server).find(isAlive))];
    const limit = execFileSync('prlimit', [...args, '--nofile', '--output=SOFT', '--noheadings'])
      .toString()
      .trim();
    const setLimit = (soft: string) => execFileSync('prlimit', [...args, `--nofile=${soft}:`]);
    const probe = async (): Promise<string> => (await fetch(`${server.opsUrl}/readyz`)).text();
    setLimit('3');
    try {
      await expect.poll(probe).toMatch(/worker \d+: no file descriptors are left/);
      await expect.poll(server.output).toContain('no_descriptors');
    } finally {
      setLimit(limit);
    }
    await expect.poll(probe).not.toContain('descriptors');
  },
  300_000,
);

test('workers: a connection that one got and did not take before it ended is closed', async () => {
  await reach(server, 3); // one was replaced
  const stopped = workerPids(server).findLast(isAlive) as number; // two are
  process.kill(stopped, 'SIGSTOP');
  const outcomes: unknown[] = [];
  const asks = Array.from({ length: 4 }, async () => {
    outcomes.push(
      await get(server, '/time').then(
        ({ status }) => status,
        ({ code }) => code,
      ),
    );
  });
  await until(() => outcomes.length === 3);
  process.kill(stopped, 'SIGKILL');
  await Promise.all(asks);
  expect(outcomes).toEqual([200, 200, 200, 'ECONNRESET']);
  await reach(server, 4);
});

test('workers: told to stop, they finish what is under way and no request fails', async () => {
  const failures: unknown[] = [];
  let answered = 0;
  const load = async (agent: Agent): Promise<void> => {
    try {
      for (;;) {
        const { status, text } = await get(server, latest, world, agent);
        if (status !== 200) failures.push(text);
        answered += 1;
      }
    } catch (error) {
      // Nobody listens any more: this is where a client turns to another node.
      if ((error as NodeJS.ErrnoException).code !== 'ECONNREFUSED') failures.push(error);
    }
  };
  const loads = Array.from({ length: 8 }, () => load(new Agent({ keepAlive: true, maxSockets: 1 })));
  await until(() => answered > 200);
  const stopped = server.stop();
  await Promise.all(loads);
  expect(failures).toEqual([]);
  expect((await stopped).code).toBe(0);
  expect(server.output()).toContain('"event":"stopped","clean":true');
  expect(workerPids(server).filter(isAlive)).toEqual([]);
});

test('workers: when each secret was last used, and how often each account asked, is stored by those that answered', async () => {
  // Workers alone answer requests, and the test before has ended them all; both accounts asked several.
  const show = async (command: string, name: string) => {
    const args = ['account', command, name, '--json', '--store', world.store];
    return JSON.parse((await runCommand(args, world.folder)).stdout);
  };
  for (const name of ['reader', 'limited']) {
    const { secrets } = await show('show', name);
    expect(secrets).toHaveLength(1);
    const usedAtMs = Date.parse(secrets[0].lastUsedAt);
    expect(usedAtMs).toBeGreaterThanOrEqual(Math.floor(startedAtMs / 60_000) * 60_000);
    expect(usedAtMs).toBeLessThanOrEqual(Date.now());
    const { usage } = await show('usage', name);
    const asked = usage.find(({ route }: { readonly route: string }) => route === 'reportLatest');
    expect(asked?.requests).toBeGreaterThan(name === 'reader' ? 200 : 5);
  }
});

/** The names in the certificates that eight connections in a row are shown, which both workers are among. */
const shownNames = async ({ port }: Server): Promise<readonly string[]> => {
  const names = new Set<string>();
  for (let i = 0; i < 8; i++) {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await new Promise((resolve, reject) => socket.once('secureConnect', resolve).once('error', reject));
    names.add(String(socket.getPeerCertificate().subject.CN));
    socket.destroy();
  }
  return [...names];
};

/** Files of a certificate, and the way to put one of another name there. */
const createTlsFiles = ({ folder }: World) => {
  const files = { cert: join(folder, 'chain.pem'), key: join(folder, 'tls-key.pem') };
  const install = (name: string): void => {
    const { cert, key } = createCertificate(name);
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key, { mode: 0o600 });
  };
  const spoil = (): void => writeFileSync(files.cert, 'not a certificate\n');
  return { flags: ['--tls-cert', files.cert, '--tls-key', files.key], install, spoil };
};

test('workers: a new certificate reaches them all, and without their primary they end', async () => {
  const { flags, install } = createTlsFiles(world);
  install('first');
  const orphaned = await serve(flags);
  expect(await shownNames(orphaned)).toEqual(['first']);
  install('second');
  process.kill(primaryPid(orphaned), 'SIGHUP');
  await until(async () => (await shownNames(orphaned)).join() === 'second');
  await reach(orphaned, 2);
  const pids = workerPids(orphaned);
  process.kill(primaryPid(orphaned), 'SIGKILL');
  await until(() => !pids.some(isAlive));
});

/** A module that every process loads first: while the file exists, a worker learns of no new certificate, and writes to the file when one has come. */
const delayingModule = (file: string): string => {
  const text = `import { existsSync, writeFileSync } from 'node:fs';
    const emit = process.emit;
    let hasCome = false;
    const tryEmit = (event, message, ...rest) => {
      if (!process.send || event !== 'message' || message?.kind !== 'reloadTls' || !existsSync(${JSON.stringify(file)}))
        return emit.call(process, event, message, ...rest);
      if (!hasCome) writeFileSync(${JSON.stringify(file)}, 'come');
      hasCome = true;
      setTimeout(tryEmit, 20, event, message, ...rest);
      return true;
    };
    process.emit = tryEmit;`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
};

test('workers: all get the certificate that was there at SIGHUP, also one that takes it when the files have changed again', async () => {
  const other = await createWorld();
  const { flags, install, spoil } = createTlsFiles(other);
  const delayed = join(other.folder, 'delayed');
  install('first');
  const oneWorker = ['--workers', '1', '--verifier-threads', '1', ...flags];
  const renewed = await startServer(other, oneWorker, { NODE_OPTIONS: `--import=${delayingModule(delayed)}` });
  try {
    await renewed.printed(/"event":"started"/);
    writeFileSync(delayed, '');
    install('second');
    process.kill(primaryPid(renewed), 'SIGHUP');
    await expect.poll(() => readFileSync(delayed, 'utf8')).toBe('come'); // the primary has read the files
    install('third');
    rmSync(delayed);
    await renewed.printed(/"event":"reloaded"/);
    expect(await shownNames(renewed)).toEqual(['second']);
    spoil();
    process.kill(primaryPid(renewed), 'SIGHUP');
    await renewed.printed(/"code":"tls_reload_failed"/);
    expect(await shownNames(renewed)).toEqual(['second']);
    expect(renewed.output()).not.toContain('PRIVATE KEY');
  } finally {
    await renewed.stop();
    other.remove();
  }
});

/** A module that every process loads first: while the file exists, a worker that is ready does not say so. */
const holdingModule = (file: string): string => {
  const text = `import { existsSync } from 'node:fs';
    const send = process.send?.bind(process);
    const trySend = (message, ...rest) => {
      if (message?.kind === 'ready' && existsSync(${JSON.stringify(file)})) setTimeout(trySend, 20, message, ...rest);
      else send(message, ...rest);
    };
    if (send) process.send = trySend;`;
  return `data:text/javascript,${encodeURIComponent(text)}`;
};

inFull('workers: a new certificate reaches one that has read the old one and is not ready yet', async () => {
  const other = await createWorld();
  const { flags, install } = createTlsFiles(other);
  const held = join(other.folder, 'held');
  install('first');
  const oneWorker = ['--workers', '1', '--verifier-threads', '1', ...flags];
  const renewed = await startServer(other, oneWorker, { NODE_OPTIONS: `--import=${holdingModule(held)}` });
  try {
    await reach(renewed, 1);
    writeFileSync(held, '');
    process.kill(workerPids(renewed)[0] as number, 'SIGKILL'); // one has written
    await renewed.printed(/"code":"worker_ended"/);
    await reach(renewed, 2);
    install('second');
    process.kill(primaryPid(renewed), 'SIGHUP');
    expect(await (await fetch(`${renewed.opsUrl}/readyz`)).text()).toContain('no worker is running');
    rmSync(held);
    await expect.poll(async () => (await fetch(`${renewed.opsUrl}/readyz`)).text()).not.toContain('no worker');
    await expect.poll(() => shownNames(renewed)).toEqual(['second']);
  } finally {
    await renewed.stop();
    other.remove();
  }
});

inFull('workers: one that is replaced gets the certificate in use, whatever the files hold', async () => {
  const other = await createWorld();
  const { flags, install, spoil } = createTlsFiles(other);
  install('first');
  const renewed = await startServer(other, ['--workers', '1', '--verifier-threads', '1', ...flags]);
  const replaceWorker = async (): Promise<void> => {
    const known = workerPids(renewed).length;
    process.kill(workerPids(renewed).at(-1) as number, 'SIGKILL'); // the caller has reached one
    await until(() => renewed.output().split('"code":"worker_ended"').length > known);
    await reach(renewed, known + 1);
  };
  try {
    await reach(renewed, 1);
    spoil();
    await replaceWorker();
    expect(await shownNames(renewed)).toEqual(['first']);
    install('second');
    await replaceWorker();
    expect(await shownNames(renewed)).toEqual(['first']); // nobody has said that both files are there
    process.kill(primaryPid(renewed), 'SIGHUP');
    await expect.poll(() => shownNames(renewed)).toEqual(['second']);
    spoil();
    process.kill(primaryPid(renewed), 'SIGHUP');
    await renewed.printed(/"code":"tls_reload_failed"/);
    await replaceWorker();
    expect(await shownNames(renewed)).toEqual(['second']);
  } finally {
    await renewed.stop();
    other.remove();
  }
});

inFull(
  'workers: those that hang are named, killed and replaced, and while all hang the node is not ready',
  async () => {
    const other = await createWorld();
    const stuck = await startServer(other, twoWorkers);
    const probe = async (): Promise<string> => (await fetch(`${stuck.opsUrl}/readyz`)).text();
    try {
      await reach(stuck, 2);
      const pids = workerPids(stuck);
      for (const pid of pids) process.kill(pid, 'SIGSTOP');
      for (const pid of pids)
        await stuck.printed(new RegExp(`"code":"worker_silent".*process ${pid}, has not answered`));
      expect(await probe()).toContain('no worker answers; see the log');
      expect(await probe()).toMatch(/"degraded":\["worker 1: no answer for \d+ s","worker 2: no answer for \d+ s"\]/);
      await stuck.printed(/"code":"worker_ended".*A worker did not answer for 30 s and was killed/);
      await until(async () => !pids.some(isAlive) && !(await probe()).includes('worker'));
      await reach(stuck, 4);
    } finally {
      await stuck.stop();
      other.remove();
    }
  },
);
