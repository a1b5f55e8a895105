// The primary's side of workers: starts them on one port, replaces those that exit, relays their messages, and drains them without failed requests
// (D63). worker.ts is the other side.
import cluster, { type Worker } from 'node:cluster';
import { createSecureContext } from 'node:tls';
import { backoffMs } from '@sealpost/protocol';
import type { ShareLimits } from '../access/node-limits.ts';
import { createUsedSignatures } from '../access/used-signatures.ts';
import { watchHandedOver } from '../connections/node-internals.ts';
import type { ReadPath } from '../node/read-path.ts';
import type { NodeSettings } from '../node/write-path.ts';
import { type MetricValues, sumMetrics, totalsOf } from '../observe/metrics.ts';
import type { Listener } from '../observe/observe.ts';
import type { StartWatch } from '../runtime/start-watch.ts';
import { programBeside } from '../runtime/threads.ts';
import {
  certificateEndMsOf,
  readTlsFiles,
  type TlsFiles,
  type TlsPair,
  type TlsSettings,
  tlsFilesOf,
  tlsReloadFailed,
} from '../runtime/tls-files.ts';
import { createDamageLog } from '../store/damage.ts';
import type { Damage } from '../store/store.ts';
import { createLimitRelay, machineMs } from './limits.ts';
import {
  type FromWorker,
  type ToWorker,
  workerKeyVariable,
  workerReadStoreVariable,
  workerStoreVariable,
} from './messages.ts';

export type WorkersOptions = {
  readonly settings: NodeSettings;
  /** The key itself; undefined when it is in the file. */
  readonly key: string | undefined;
  readonly observe: Listener;
  /** How limits are held together with other nodes; undefined when there are none. */
  readonly shareLimits: ShareLimits | undefined;
  /** Takes lines of the workers' logs. */
  readonly writeLog: (lines: readonly string[]) => void;
  readonly starting: StartWatch;
  /** Calls back when reports were stored; returns the way to stop. */
  readonly onAppended: (wake: () => void) => () => void;
};

export type Workers = Pick<ReadPath, 'certificateEndMs'> & {
  readonly url: string;
  /** Why no request could be answered; undefined when one can. */
  readonly check: () => string | undefined;
  /** What is wrong with workers that still answer. */
  readonly degraded: () => readonly string[];
  /** Damaged records that workers came across, those that have ended included. */
  readonly damage: () => readonly Damage[];
  /** The metrics of all workers, those that have ended included, to be added up. */
  readonly values: () => Promise<readonly (readonly MetricValues[])[]>;
  readonly reloadTls: () => void;
  /** Lets all finish what is under way; resolves when none is left. */
  readonly drain: () => Promise<void>;
};

/** A worker that does not listen or exit in time is killed. */
const startMaxMs = 60_000;
const endMarginMs = 3_000;
const stopListeningMaxMs = 2_000;
/** A worker that does not answer in time counts with its last values. */
const metricsMaxMs = 1_000;

/** A worker that ran for this long did not exit early. */
const steadyMs = 10_000;
const replaceMaxMs = 10_000;
/** The pause before a worker is replaced, after so many in a row that exited early: none, then 0.1 s, doubling up to 10 s. */
export const replaceAfterMs = (earlyEnds: number): number =>
  earlyEnds === 0 ? 0 : backoffMs(earlyEnds - 1, 100, replaceMaxMs);

type Member = Pinged & {
  readonly worker: Worker;
  readonly startedMs: number;
  /** Where it listens; undefined before. */
  url: string | undefined;
  hasStoppedListening: boolean;
  degraded: Pick<Extract<FromWorker, { kind: 'degraded' }>, 'reasons' | 'isLeftBehind'>;
  failure: NodeJS.ErrnoException | undefined;
  /** Kinds of messages that have not left yet. */
  readonly unsent: Set<ToWorker['kind']>;
  readonly waiting: Set<() => void>;
};

/** What is known of a worker that has exited, or could not be started. */
type Ended = Pick<Member, 'failure' | 'startedMs'>;

/** Unless one of its kind has not left yet: a worker that hangs accepts no more, and must not fill the memory of the primary. */
const send = ({ worker, unsent }: Member, message: ToWorker, onSent: () => void = () => {}): void => {
  if (unsent.has(message.kind) || !worker.isConnected()) return;
  unsent.add(message.kind);
  // The callback also gets the error of one that is just ending.
  worker.send(message, () => {
    unsent.delete(message.kind);
    onSent();
  });
};

const sendAll = (members: readonly Member[], message: ToWorker): void => {
  for (const member of members) send(member, message);
};

/** Workers that listen, on whichever port the first of them got. */
const createPort = (configured: number, members: ReadonlyMap<number, Member>) => {
  let url: string | undefined;
  let asked = configured;
  return {
    /** To be asked for. Port 0 means the port that the others have; when there are none left, that one has to be named. */
    toAsk: (): number => {
      const isHeld = [...members.values()].some((member) => member.url !== undefined);
      if (url !== undefined && !isHeld) asked = Number(new URL(url).port) || configured; // the scheme's own is not shown
      return asked;
    },
    /** Is this where workers listen? The first one decides. */
    accept: (found: string): boolean => {
      url ??= found;
      return url === found;
    },
  };
};

const failureOf = ({ message, code, syscall }: Extract<FromWorker, { kind: 'failed' }>): NodeJS.ErrnoException =>
  Object.assign(new Error(message), code && { code }, syscall && { syscall });

const killUnready = (member: Member): void => {
  if (member.url !== undefined) return;
  member.failure = new Error(`A worker was not ready after ${startMaxMs / 1_000} s and was killed.`);
  member.worker.process.kill('SIGKILL');
};

/** It is replaced when it has exited. */
const killHung = (member: Member): void => {
  member.failure = new Error('A worker did not answer for 30 s and was killed.');
  member.worker.process.kill('SIGKILL');
};

/** Calls back when a worker has ended, or could not even begin. */
const onceEnded = (member: Member, onEnd: (how: string) => void): void => {
  const { worker } = member;
  const closeHandedOver = watchHandedOver(worker.process);
  worker.on('error', (error: NodeJS.ErrnoException) => {
    if (worker.process.pid !== undefined) return; // its exit follows
    member.failure = error;
    onEnd(error.message);
  });
  worker.once('exit', (code, signal) => {
    closeHandedOver();
    onEnd(signal ?? `exit code ${code}`);
  });
};

/** A message that could not be sent, because one before it has not left yet, is sent after that one. */
const sendCertificate = (member: Member, inUse: () => TlsPair | undefined): void => {
  const tls = inUse();
  if (tls === undefined) return;
  send(member, { kind: 'reloadTls', tls }, () => {
    if (inUse() !== tls) sendCertificate(member, inUse);
  });
};

/** How workers are started. */
const prepareForks = (): void => {
  const { exec, execArgv } = programBeside('./worker', import.meta.url);
  cluster.setupPrimary({
    exec,
    ...(execArgv && { execArgv: [...execArgv] }),
    args: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
};

/** Starts workers and handles their messages. */
const createMembers = ({ settings, key, observe, writeLog }: WorkersOptions) => {
  const members = new Map<number, Member>();
  const limits = createLimitRelay(machineMs, (id, spent, onSent) => {
    const member = members.get(id);
    if (member !== undefined) send(member, { kind: 'limits', limits: spent }, onSent);
  });
  const useSignature = createUsedSignatures(settings, () => performance.now());
  const totals = createWorkerTotals();
  const damage = createDamageLog();
  const certificate = keepCertificate(settings, observe);
  const port = createPort(settings.listen.port, members);
  prepareForks();
  const take = (member: Member, message: FromWorker): void => {
    const { id } = member.worker;
    member.unanswered = 0;
    if (message.kind === 'hello') {
      const listen = { ...settings.listen, port: port.toAsk() };
      const sent = { ...settings, store: '', readStore: undefined, listen };
      send(member, { kind: 'start', settings: sent, limits: limits.join(id), tls: certificate.inUse() });
    } else if (message.kind === 'ready') {
      if (port.accept(message.url)) member.url = message.url;
      else member.worker.process.kill('SIGKILL');
    } else if (message.kind === 'stoppedListening') member.hasStoppedListening = true;
    else if (message.kind === 'failed') member.failure = failureOf(message);
    else if (message.kind === 'news') {
      limits.tell(id, message.limits);
      writeLog(message.lines);
    } else if (message.kind === 'useSignatures')
      send(member, { kind: 'signaturesUsed', refusals: message.handshakes.map(useSignature) });
    else if (message.kind === 'degraded') member.degraded = message;
    else if (message.kind === 'damaged') damage.note(message.damage);
    else if (message.kind === 'metrics') totals.told(id, message.values);
    for (const wake of [...member.waiting]) wake();
  };
  /** Starts a worker; `onEnd` is called when it has exited. Throws when the system starts no process, for some reasons: `onEnd` gets the others. */
  const start = (onEnd: (member: Member, how: string) => void): Member => {
    // These go before what the primary was started with: a worker gets the key that the primary uses, and no token.
    const worker = cluster.fork({
      [workerKeyVariable]: key ?? '',
      [workerStoreVariable]: settings.store,
      [workerReadStoreVariable]: JSON.stringify(settings.readStore ?? []),
      SEALPOST_INGEST_TOKEN: '',
    });
    const member: Member = {
      worker,
      startedMs: performance.now(),
      url: undefined,
      hasStoppedListening: false,
      degraded: { reasons: [], isLeftBehind: false },
      failure: undefined,
      unanswered: 0,
      unsent: new Set(),
      waiting: new Set(),
    };
    const late = setTimeout(() => killUnready(member), startMaxMs).unref();
    members.set(worker.id, member);
    worker.process.stderr?.on('data', writeError);
    worker.on('message', (message: FromWorker) => take(member, message));
    onceEnded(member, (how) => {
      clearTimeout(late);
      members.delete(worker.id);
      limits.leave(worker.id);
      totals.ended(worker.id);
      onEnd(member, how);
      for (const wake of [...member.waiting]) wake();
    });
    return member;
  };
  return { members, totals, limits, damage, certificate, start };
};

/** Waits until a condition holds for a worker, or it has exited; checked after each of its messages. */
const until = (member: Member, holds: () => boolean, maxMs: number): Promise<void> =>
  new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      member.waiting.delete(look);
      resolve();
    };
    const look = (): void => {
      if (holds() || member.worker.isDead()) finish();
    };
    const timer = setTimeout(finish, maxMs);
    member.waiting.add(look);
    look();
  });

/** Replaces workers that exit, until stopped. */
const createReplacements = (start: ReturnType<typeof createMembers>['start'], observe: Listener) => {
  const timers = new Set<NodeJS.Timeout>();
  let isStopped = false;
  const noteEnd = (earlyEnds: number, { failure, startedMs }: Ended, how: string): void => {
    if (isStopped) return;
    const early = performance.now() - startedMs < steadyMs ? earlyEnds + 1 : 0;
    const message = `A worker exited (${how}). Another one replaces it.`;
    observe({ kind: 'warning', code: 'worker_ended', message, ...(failure && { error: failure }) });
    const timer = setTimeout(() => {
      timers.delete(timer);
      replaceOne(early);
    }, replaceAfterMs(early));
    timers.add(timer);
  };
  /** Where there is no memory for another process, Node throws here: the only writer must survive that. */
  const replaceOne = (earlyEnds: number): void => {
    try {
      start((member, how) => noteEnd(earlyEnds, member, how));
    } catch (error) {
      const failure = error as NodeJS.ErrnoException; // of the system call
      noteEnd(earlyEnds, { failure, startedMs: performance.now() }, failure.message);
    }
  };
  return {
    /** One of the first workers has exited. One that never opened is the end of all; one that did is replaced like any other. */
    noteFirst: (member: Member, how: string): void => {
      if (member.url !== undefined) noteEnd(0, member, how);
    },
    stop: (): void => {
      isStopped = true;
      for (const timer of timers) clearTimeout(timer);
    },
  };
};

/** Starts the workers; they serve when this resolves. Throws the error of the first that could not open. */
export async function openWorkers(options: WorkersOptions): Promise<Workers> {
  const { members, totals, limits, damage, certificate, start } = createMembers(options);
  const replacements = createReplacements(start, options.observe);
  const endAll = async (drainMs: number | undefined): Promise<void> => {
    replacements.stop();
    const all = [...members.values()];
    // All stop listening first: a client that one worker sends away must not reconnect to another.
    if (drainMs !== undefined) await Promise.all(all.map(stopListening));
    await Promise.all(all.map((member) => endOne(member, drainMs)));
  };
  const firsts: Member[] = [];
  try {
    while (firsts.length < options.settings.workers) firsts.push(start(replacements.noteFirst));
  } catch (error) {
    await endAll(undefined);
    throw error;
  }
  const isUp = (member: Member) => until(member, () => member.url !== undefined, startMaxMs + endMarginMs);
  await Promise.all(firsts.map((member) => options.starting.part(`worker ${member.worker.id}`, () => isUp(member))));
  const failed = firsts.find(({ url }) => url === undefined);
  if (failed !== undefined) {
    await endAll(undefined);
    throw failed.failure ?? new Error('A worker exited while it was starting. See its output above.');
  }
  const stopSharing = options.shareLimits && limits.share(options.shareLimits);
  const up = (): readonly Member[] => [...members.values()].filter(({ url }) => url !== undefined);
  const stopTelling = options.onAppended(() => sendAll(up(), { kind: 'appended' }));
  const stopPinging = watchSilence(up, {
    ping: (member) => send(member, { kind: 'ping' }),
    silent: ({ worker }) => options.observe(notAnswering(worker)),
    hung: killHung,
  });
  return {
    url: String(firsts[0]?.url),
    check: () => checkWorkers(up()),
    degraded: () => [...describeMissing(up().length, options.settings.workers), ...up().flatMap(describeMember)],
    damage: damage.list,
    values: async () => {
      const answering = up().filter((member) => silentSeconds(member) === undefined);
      await Promise.all(answering.map((member) => askMetrics(member, totals.countOf)));
      return totals.parts();
    },
    certificateEndMs: certificate.endMs,
    // Also to those that are not up yet: a worker gets its certificate before it is ready.
    reloadTls: () => {
      if (certificate.renew()) for (const member of members.values()) sendCertificate(member, certificate.inUse);
    },
    drain: async () => {
      stopTelling();
      stopPinging();
      await endAll(options.settings.drainMs);
      await stopSharing?.();
    },
  };
}

const checkWorkers = (up: readonly Member[]): string | undefined => {
  if (up.length === 0) return 'no worker is running; see the log';
  const answering = up.filter((member) => silentSeconds(member) === undefined);
  if (answering.length === 0) return 'no worker answers; see the log';
  return answering.every(({ degraded }) => degraded.isLeftBehind)
    ? 'no worker learns of new reports; see the log'
    : undefined;
};

/** Where none is left, that is the reason why the node is not ready. */
const describeMissing = (running: number, wanted: number): readonly string[] =>
  running === 0 || running >= wanted ? [] : [`${wanted - running} of ${wanted} workers not running; see the log`];

const describeMember = (member: Member): readonly string[] => {
  const seconds = silentSeconds(member);
  const reasons = [...(seconds === undefined ? [] : [`no answer for ${seconds} s`]), ...member.degraded.reasons];
  return reasons.map((reason) => `worker ${member.worker.id}: ${reason}`);
};

const notAnswering = ({ id, process: { pid } }: Worker) =>
  ({
    kind: 'warning',
    code: 'worker_silent',
    message: `Worker ${id}, process ${pid}, has not answered for 10 s. After 30 s it is killed and replaced.`,
  }) as const;

const askMetrics = async (member: Member, toldBy: (id: number) => number): Promise<void> => {
  const before = toldBy(member.worker.id);
  send(member, { kind: 'tellMetrics' });
  await until(member, () => toldBy(member.worker.id) > before, metricsMaxMs);
};

const stopListening = async (member: Member): Promise<void> => {
  send(member, { kind: 'stopListening' });
  if (member.url !== undefined) await until(member, () => member.hasStoppedListening, stopListeningMaxMs);
};

/** Lets one finish, if there is time for it and it has something to finish; kills it otherwise. */
const endOne = async (member: Member, drainMs: number | undefined): Promise<void> => {
  if (member.url !== undefined && drainMs !== undefined) {
    send(member, { kind: 'drain' });
    await until(member, () => false, drainMs + endMarginMs);
  }
  if (!member.worker.isDead()) member.worker.process.kill('SIGKILL');
  await until(member, () => false, endMarginMs);
};

/** The certificate in use. Workers get it from here: each would read the files at another time, and they may change in between, or break. */
export function keepCertificate(settings: TlsSettings, observe: Listener) {
  const files = tlsFilesOf(settings);
  let inUse = files && readTlsFiles(files);
  return {
    inUse: () => inUse,
    endMs: () => inUse && certificateEndMsOf(inUse),
    /** Reads the files again; false if there is nothing new to use. */
    renew: (): boolean => {
      try {
        if (files === undefined) observe({ kind: 'reloaded', settings: [] });
        else inUse = readUsable(files);
        return files !== undefined;
      } catch (error) {
        observe(tlsReloadFailed(error));
        return false;
      }
    },
  };
}

/** Throws also if they do not match. */
const readUsable = (files: TlsFiles): TlsPair => {
  const pair = readTlsFiles(files);
  createSecureContext(pair);
  return pair;
};

/** What workers may have on its way to a standard error that nobody reads. */
const errorBytesMax = 1_048_576;

/**
 * Writes what a worker says on standard error, such as a crash of Node's. A worker has none of the primary's own outputs: a process that gets a pipe makes it
 * blocking for all that have it, and a primary that waits to write to one that nobody reads cannot exit.
 */
const writeError = (bytes: Buffer): void => {
  if (process.stderr.writableLength < errorBytesMax) process.stderr.write(bytes);
};

const pingEveryMs = 1_000;
/** So many pings in a row without an answer make a worker silent. */
const silentAfter = 10;
/** So many, and it hangs. */
const hungAfter = 30;

type Pinged = {
  /** Pings since its last message. */
  unanswered: number;
};

/** For how many seconds, at least, a silent one has not answered; undefined for others. */
export const silentSeconds = ({ unanswered }: Pinged): number | undefined =>
  unanswered > silentAfter ? ((unanswered - 1) * pingEveryMs) / 1_000 : undefined;

/**
 * Notices workers whose event loop does not run (D235): pings the listed until stopped, and any message of one is an answer; calls back once when one becomes
 * silent, and once when it hangs. Pings are counted, not time, so nothing counts while this process itself was stopped, suspended or kept from running.
 */
export function watchSilence<One extends Pinged>(
  list: () => readonly One[],
  on: Readonly<Record<'ping' | 'silent' | 'hung', (one: One) => void>>,
): () => void {
  const timer = setInterval(() => {
    for (const one of list()) {
      const before = one.unanswered;
      one.unanswered += 1;
      if (before === silentAfter) on.silent(one);
      if (before === hungAfter) on.hung(one);
      on.ping(one);
    }
  }, pingEveryMs);
  return () => clearInterval(timer);
}

type Values = readonly MetricValues[];

type WorkerTotals = {
  readonly told: (member: number, values: Values) => void;
  readonly ended: (member: number) => void;
  /** How often a running worker has reported. */
  readonly countOf: (member: number) => number;
  /** The last values of each running worker, and one part for all that exited. */
  readonly parts: () => Promise<readonly Values[]>;
};

/** The workers' metrics: the last values of each, and the totals of those that exited, so that no counter ever decreases. */
export function createWorkerTotals(): WorkerTotals {
  const last = new Map<number, { readonly values: Values; readonly count: number }>();
  const countOf = (member: number): number => last.get(member)?.count ?? 0;
  let gone: Promise<Values> = Promise.resolve([]);
  return {
    told: (member, values) => void last.set(member, { values, count: countOf(member) + 1 }),
    countOf,
    ended: (member) => {
      const totals = totalsOf(last.get(member)?.values ?? []);
      last.delete(member);
      if (totals.length > 0) gone = gone.then((sum) => sumMetrics([sum, totals]));
    },
    parts: async () => {
      // Both change in one step: a worker that exits meanwhile is never in both.
      const [living, ended] = [[...last.values()].map(({ values }) => values), gone];
      return [...living, await ended];
    },
  };
}
