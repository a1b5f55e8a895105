// The log: which observations become a line, at which level, with which fields. Fields are listed one by one, so that no header, signature, secret or
// raw path is logged. A flood of warnings becomes a few lines and a count.
import { type Logger, pino } from 'pino';
import type { LogLevel } from '../config/values.ts';
import type { RequestEvent } from '../http/pipeline.ts';
import { type ServedName, servedLabels } from '../http/target.ts';
import { limitedNetworkOf, shownAddressOf } from '../runtime/ip-address.ts';
import { memoise } from '../runtime/kept-values.ts';
import type { AdminReloadEvent } from '../store/admin-snapshot.ts';
import type { StoreEvent } from '../store/store-event.ts';
import { countedCodes, type Listener, type Observation } from './observe.ts';
import { type LogDestination, openStandardOutput } from './standard-output.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A line to be; `complaint` is the word that it is counted by when there are too many. */
type Line = {
  readonly level: Exclude<LogLevel, 'silent'>;
  readonly fields: Fields;
  readonly complaint?: string;
};

const roundMs = (ms: number): number => Math.round(ms * 1_000) / 1_000;

const messageCharactersMax = 500;

const cut = (text: string, max = messageCharactersMax): string => (text.length > max ? `${text.slice(0, max)}…` : text);

export type LogOptions = {
  readonly level: LogLevel;
  /** Standard output when absent. */
  readonly destination?: LogDestination;
  readonly nowMs: () => number;
  /** A request or commit that takes longer is a warning. */
  readonly slowMs: number;
  /** Lines per second and kind of warning; the rest is counted in one line at the end of the second. */
  readonly complaintsPerSecondMax: number;
  /** Calls back after a time; a timer that does not keep the process alive when absent. */
  readonly later?: (act: () => void, ms: number) => void;
  /** Called when lines for standard output were lost: the log itself may not be able to tell. */
  readonly onLost?: () => void;
};

export type Log = {
  readonly observe: Listener;
  /** Writes lines that the log of another process made. */
  readonly pass: (lines: readonly string[]) => void;
  /** Logs the counts of held-back lines and writes what can be written at once: for a process that exits. */
  readonly flushSync: () => void;
  /** Logs the counts of held-back lines; resolves when everything is written, or nobody reads it. */
  readonly close: () => Promise<void>;
};

/** Opens a log. */
export function openLog(options: LogOptions): Log {
  const timeOf = createClockText();
  const destination =
    options.destination ??
    openStandardOutput({
      onLost: options.onLost ?? (() => {}),
      onDropped: (count) => logger.warn({ event: 'suppressed', of: 'lines', count }),
    });
  const logger = pino(
    {
      level: options.level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: () => `,"time":"${timeOf(options.nowMs())}"`,
    },
    { write: (line) => destination.write(escapeControls(line)) },
  );
  const plainLine = logger.isLevelEnabled('info')
    ? createPlainLine(options.slowMs, () => timeOf(options.nowMs()))
    : () => undefined;
  const limit = createComplaintLimit(options, (of, count, codes) =>
    logger.warn({ event: 'suppressed', of, count, codes }),
  );
  const repeats = createRepeats(options.later ?? laterUnref, logger);
  return {
    observe: (observation) => {
      const plain = observation.kind === 'request' ? plainLine(observation) : undefined;
      if (plain !== undefined) return destination.write(plain);
      const isRepeat = repeats.note(observation);
      if (isRepeat && observation.kind === 'warning') return;
      const line = toLine(observation, options.slowMs, isRepeat);
      if (line.complaint !== undefined && !limit.take(observation.kind, line.complaint)) return;
      logger[line.level](line.fields);
      // What follows may be a crash in native code, which would take the line with it.
      if (observation.kind === 'endedUnexpectedly') destination.flushSync?.();
    },
    pass: (lines) => {
      for (const line of lines) destination.write(line);
    },
    flushSync: () => {
      limit.flush();
      repeats.flush();
      destination.flushSync?.();
    },
    close: async () => {
      limit.flush();
      repeats.flush();
      await (destination.close ?? destination.flushSync)?.();
    },
  };
}

/** The text of a timestamp; its seconds are rendered once a second, which takes a third off a line. */
const createClockText = (): ((ms: number) => string) => {
  let second = Number.NaN;
  let text = '';
  return (ms) => {
    const now = Math.floor(ms / 1_000);
    if (now !== second) {
      second = now;
      text = new Date(now * 1_000).toISOString().slice(0, -4);
    }
    return `${text}${String(ms - now * 1_000).padStart(3, '0')}Z`;
  };
};

// JSON escapes what is below U+0020. A terminal also obeys DEL and the C1 controls, a viewer line separators and text direction.
const controls = /[\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

const escapeControls = (line: string): string =>
  line.replace(controls, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

const toLine = (observation: Observation, slowMs: number, isRepeat: boolean): Line => {
  const { kind: event } = observation;
  switch (observation.kind) {
    case 'request':
      return requestLine(observation, slowMs, isRepeat);
    case 'ingested':
      return { level: 'debug', fields: { event, result: observation.result, count: observation.count } };
    case 'refused': {
      const { code, feedId, message } = observation;
      return { level: 'warn', fields: { event, code, feedId, message: cut(message) }, complaint: code };
    }
    case 'committed': {
      const durationMs = roundMs(observation.seconds * 1_000);
      if (durationMs < slowMs) return { level: 'debug', fields: { event, durationMs } };
      return { level: 'warn', fields: { event, durationMs, slow: true }, complaint: 'slow' };
    }
    case 'visible':
      return {
        level: 'debug',
        fields: { event, durationMs: roundMs(observation.seconds * 1_000), count: observation.count },
      };
    case 'staleReaders': {
      const { count } = observation;
      return { level: count > 0 ? 'info' : 'debug', fields: { event, count } };
    }
    case 'damaged':
    case 'endedUnexpectedly':
    case 'writingStopped':
    case 'writingResumed':
    case 'threadEnded':
    case 'statements':
    case 'statementFailed':
    case 'historyRead':
    case 'replicaUnused':
    case 'replicaUsed':
    case 'followingStopped':
    case 'followingResumed':
    case 'durabilityReduced':
    case 'durabilityRestored':
    case 'commitsLost':
    case 'reportsDeleted':
      return storeLine(observation);
    case 'started':
      return { level: 'info', fields: { event, version: observation.version, addresses: observation.addresses } };
    case 'draining':
      return { level: 'info', fields: { event, reason: observation.reason } };
    case 'stopped':
      return { level: observation.clean ? 'info' : 'error', fields: { event, clean: observation.clean } };
    case 'reloaded':
      return reloadedLine(observation);
    case 'adminReloadFailed':
    case 'adminReloadRecovered':
      return adminReloadLine(observation);
    case 'warning':
      return warningLine(observation);
    case 'liveOpened':
    case 'liveDelivered':
      return { level: 'debug', fields: { event, route: pathOf(observation.route) } };
    case 'liveEnded':
      return liveLine(observation);
    case 'secretNotOpened':
      return secretLine(observation);
    case 'connectionDropped':
      return { level: 'warn', fields: { event, reason: observation.reason }, complaint: 'connection_dropped' };
  }
};

const damageLine = (found: Damaged): Line => {
  if (found.kind === 'endedUnexpectedly') {
    const { kind: event, times } = found;
    const message = `The last process that wrote to this store ended unexpectedly${times > 1 ? `, ${times} times in a row` : ''}. Run: sealpost store verify.`;
    return { level: times > 1 ? 'error' : 'warn', fields: { event, times, message }, complaint: 'ended_unexpectedly' };
  }
  const { kind: event, table, key, reason, feedId = null } = found;
  const message = 'A stored record is damaged and left out. Run: sealpost store verify.';
  return {
    level: 'error',
    fields: { event, table, key: cut(key), reason: cut(reason), feedId, message },
    complaint: table,
  };
};

type Damaged = Extract<StoreEvent, { kind: 'damaged' | 'endedUnexpectedly' }>;
type Writing = Extract<StoreEvent, { kind: 'writingStopped' | 'writingResumed' | 'threadEnded' }>;

const databaseLine = ({
  kind: event,
  ...fields
}: Extract<StoreEvent, { kind: 'statements' | 'statementFailed' | 'historyRead' }>): Line => ({
  level: 'debug',
  fields: { event, ...fields },
});

const replicaLine = (told: Extract<StoreEvent, { kind: 'replicaUnused' | 'replicaUsed' }>): Line => {
  const { kind: event, replica } = told;
  if (told.kind === 'replicaUsed')
    return { level: 'info', fields: { event, replica, durationMs: roundMs(told.seconds * 1_000) } };
  const { reason } = told;
  return { level: 'warn', fields: { event, replica, reason: cut(reason) }, complaint: 'replica_unused' };
};

type Lasting = Extract<StoreEvent, { kind: `following${string}` | `durability${string}` }>;

const lastingLine = (told: Lasting): Line => {
  const { kind: event } = told;
  if (told.kind === 'followingResumed' || told.kind === 'durabilityRestored')
    return { level: 'info', fields: { event, durationMs: roundMs(told.seconds * 1_000) } };
  const fields = { event, reason: cut(told.reason) };
  const complaint = told.kind === 'followingStopped' ? 'following_stopped' : 'durability_reduced';
  return told.isNews ? { level: 'error', fields, complaint } : { level: 'debug', fields };
};

const lossLine = ({ kind: event, reason }: Extract<StoreEvent, { kind: 'commitsLost' }>): Line => ({
  level: 'error',
  fields: { event, reason: cut(reason) },
  complaint: 'commits_lost',
});

const writingLine = (told: Writing): Line => {
  const { kind: event } = told;
  if (told.kind === 'threadEnded') {
    const { thread, reason } = told;
    return { level: 'error', fields: { event, thread, reason: cut(reason) }, complaint: 'thread_ended' };
  }
  if (told.kind === 'writingResumed') {
    const { part, seconds } = told;
    return { level: 'info', fields: { event, part, durationMs: roundMs(seconds * 1_000) } };
  }
  const { part, code, reason } = told;
  return { level: 'error', fields: { event, part, code, reason: cut(reason) }, complaint: 'writing_stopped' };
};

type Told = Exclude<StoreEvent, { kind: 'committed' | 'staleReaders' }>;

export function storeLine(told: Told): Line {
  switch (told.kind) {
    case 'damaged':
    case 'endedUnexpectedly':
      return damageLine(told);
    case 'writingStopped':
    case 'writingResumed':
    case 'threadEnded':
      return writingLine(told);
    case 'statements':
    case 'statementFailed': // the request that fails because of it says more
    case 'historyRead':
      return databaseLine(told);
    case 'replicaUnused':
    case 'replicaUsed':
      return replicaLine(told);
    case 'followingStopped':
    case 'followingResumed':
    case 'durabilityReduced':
    case 'durabilityRestored':
      return lastingLine(told);
    case 'reportsDeleted': {
      const { kind: event, count, endMs } = told;
      return { level: 'info', fields: { event, count, before: new Date(endMs).toISOString() } };
    }
    case 'commitsLost':
      return lossLine(told);
  }
}

const reloadedLine = ({ kind: event, settings, certificate }: Extract<Observation, { kind: 'reloaded' }>): Line => {
  const shown = certificate && { certificate: { names: cut(certificate.names), validTo: certificate.validTo } };
  return { level: 'info', fields: { event, settings, ...shown } };
};

const adminReloadLine = (told: AdminReloadEvent): Line => {
  const { kind: event } = told;
  if (told.kind === 'adminReloadRecovered')
    return { level: 'info', fields: { event, durationMs: roundMs(told.seconds * 1_000) } };
  const fields = { event, error: describeError(told.error) };
  return told.isNews ? { level: 'error', fields, complaint: 'admin_reload_failed' } : { level: 'debug', fields };
};

const secretLine = (found: Extract<Observation, { kind: 'secretNotOpened' }>): Line => {
  const { kind: event, userId, secretId, error } = found;
  const message = 'A stored secret cannot be opened: its user gets 401.';
  const fields = { event, userId, secretId, message, error: describeError(error) };
  return { level: 'error', fields, complaint: 'secret_not_opened' };
};

const warningLine = (told: Extract<Observation, { kind: 'warning' }>): Line => {
  const { kind: event, code, message, error, address } = told;
  const from = address !== undefined && { address: shownAddressOf(address) };
  const cause = error !== undefined && { error: describeError(error) };
  return { level: 'warn', fields: { event, code, message: cut(message), ...from, ...cause }, complaint: code };
};

const liveLine = (ended: Extract<Observation, { kind: 'liveEnded' }>): Line => {
  const { kind: event, requestId, userId, route, messages, bytes, durationMs, reason, closeCode } = ended;
  const counts = { durationMs: roundMs(durationMs), messages, bytes };
  return { level: 'info', fields: { event, requestId, userId, route: pathOf(route), ...counts, reason, closeCode } };
};

const requestLine = (event: RequestEvent, slowMs: number, isRepeat: boolean): Line => {
  const { requestId, userId, address, route, method, status, durationMs, bytes, code, error } = event;
  const failed = isFailure(event) && !isRepeat;
  const slow = durationMs >= slowMs;
  const fields = {
    event: event.kind,
    requestId,
    userId,
    address: shownAddressOf(address),
    route: pathOf(route),
    method,
    status,
    durationMs: roundMs(durationMs),
    bytes,
    code,
    ...(slow && { slow }),
    ...(failed && { error: describeError(error) }),
  };
  const isBad = event.isIntercepted !== true && !isRepeat && (slow || status >= 500);
  return {
    level: failed ? 'error' : isBad ? 'warn' : 'info',
    fields,
    ...(isShedAnswer(event) && { complaint: code ?? '' }),
  };
};

/** Methods of answers whose line is made here. */
const plainMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);
const plainId = /^[\w-]+$/;

/**
 * The line of a request without an error, with the bytes that pino would write: nearly every line is one, and pino takes 15 % of a whole `latest` for
 * it (2026-11-19). Undefined for any other, and for values that need escapes.
 */
const createPlainLine = (slowMs: number, time: () => string): ((event: RequestEvent) => string | undefined) => {
  const { pid } = process;
  const quote = memoise((text) => escapeControls(JSON.stringify(text)));
  const quoteAddress = memoise((text) => quote(shownAddressOf(text)));
  return ({ kind, requestId, userId, address, route, method, status, durationMs, bytes, code }) => {
    if (code !== null || status >= 500 || durationMs >= slowMs) return undefined;
    if (!plainMethods.has(method) || !plainId.test(requestId)) return undefined;
    const user = userId === null ? 'null' : quote(userId);
    const path = route === null ? 'null' : quote(servedLabels[route]);
    return `{"level":"info","time":"${time()}","pid":${pid},"event":"${kind}","requestId":"${requestId}","userId":${user},"address":${quoteAddress(address)},"route":${path},"method":"${method}","status":${status},"durationMs":${roundMs(durationMs)},"bytes":${bytes},"code":null}\n`;
  };
};

// The table's path, as the metrics show it; never the one that was sent.
const pathOf = (route: ServedName | null): string | null => (route === null ? null : servedLabels[route]);

const stackCharactersMax = 4_000;
const causesMax = 3;

/** What the log says of an error: of its properties only the code, since others may contain what a client sent. */
const describeError = (error: unknown, depth = 0): Fields => {
  if (!(error instanceof Error)) return { message: cut(String(error)) };
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown }; // node's errors and ours have one
  return {
    name,
    message: cut(message),
    ...((typeof code === 'string' || typeof code === 'number') && { code }),
    ...(stack !== undefined && { stack: cut(stack, stackCharactersMax) }),
    ...(cause !== undefined && depth < causesMax && { cause: describeError(cause, depth + 1) }),
  };
};

type Summarise = (of: Observation['kind'], count: number, codes: Fields) => void;

/** Counts complaints by kind in seconds that begin with the first of them; kinds and codes are few, so this stays small. */
const createComplaintLimit = (
  { nowMs, complaintsPerSecondMax, later = laterUnref }: LogOptions,
  summarise: Summarise,
) => {
  type Second = {
    readonly beganMs: number;
    readonly endsMs: number;
    lines: number;
    readonly held: Map<string, number>;
  };
  const seconds = new Map<Observation['kind'], Second>();
  const end = (kind: Observation['kind'], second: Second): void => {
    if (seconds.get(kind) !== second) return; // ended before, by a later complaint or by closing
    seconds.delete(kind);
    const count = [...second.held.values()].reduce((sum, one) => sum + one, 0);
    if (count > 0) summarise(kind, count, Object.fromEntries(second.held));
  };
  const begin = (kind: Observation['kind'], atMs: number): Second => {
    const second = { beganMs: atMs, endsMs: atMs + 1_000, lines: 0, held: new Map<string, number>() };
    seconds.set(kind, second);
    return second;
  };
  return {
    /** Whether this one gets its own line. */
    take: (kind: Observation['kind'], code: string): boolean => {
      const atMs = nowMs();
      const last = seconds.get(kind);
      // A clock that was set back would be in the same second for hours.
      if (last !== undefined && (atMs >= last.endsMs || atMs < last.beganMs)) end(kind, last);
      const second = seconds.get(kind) ?? begin(kind, atMs);
      second.lines += 1;
      if (second.lines <= complaintsPerSecondMax) return true;
      if (second.held.size === 0) later(() => end(kind, second), second.endsMs - atMs);
      second.held.set(code, (second.held.get(code) ?? 0) + 1);
      return false;
    },
    flush: (): void => {
      for (const [kind, second] of [...seconds]) end(kind, second);
    },
  };
};

/** Keys per minute; the others are counted together, under null. */
const keysMax = 100;
const minuteMs = 60_000;

type MinuteCounts = {
  /** Counts one. Is it the first of its key and code, in this minute and, while there were some in each, those before? */
  readonly add: (key: string, code: string) => boolean;
  readonly flush: () => void;
};

/** `later` calls back after a time. The first of a code counts as `first`. `write` gets the codes of a key with how often each was counted. */
const createMinuteCounts = (
  later: (act: () => void, ms: number) => void,
  first: 0 | 1,
  write: (key: string | null, codes: Readonly<Record<string, number>>) => void,
): MinuteCounts => {
  let counts = new Map<string | null, Map<string, number>>();
  const end = (): void => {
    const ended = counts;
    counts = new Map();
    for (const [key, codes] of ended) {
      const counted = [...codes].filter(([, count]) => count > 0);
      if (counted.length === 0) continue;
      write(key, Object.fromEntries(counted));
      keep(key, new Map(counted.map(([code]) => [code, 0])));
    }
  };
  /** The minute begins with the first key. */
  const keep = (key: string | null, codes: Map<string, number>): void => {
    if (counts.size === 0) {
      const begun = counts;
      later(() => counts === begun && end(), minuteMs);
    }
    counts.set(key, codes);
  };
  return {
    add: (key, code) => {
      const place = counts.has(key) || counts.size < keysMax ? key : null;
      if (!counts.has(place)) keep(place, new Map());
      const codes = counts.get(place) as Map<string, number>; // just put there
      const before = codes.get(code);
      codes.set(code, before === undefined ? first : before + 1);
      return before === undefined;
    },
    flush: end,
  };
};

const shedCodes: readonly string[] = countedCodes.shed;

const isShedAnswer = ({ code }: RequestEvent): boolean => code !== null && shedCodes.includes(code);

// Shedding is meant to be cheap: it has no cause worth a stack, and of many only a few lines. An interceptor answers 5xx on purpose; any other 5xx has a cause.
const isFailure = (event: RequestEvent): boolean =>
  event.status >= 500 && event.isIntercepted !== true && !isShedAnswer(event);

const rejectedCodes: ReadonlySet<string> = new Set([...countedCodes.authFailure, ...countedCodes.rateLimited]);

/**
 * What happens too often for a line each, whatever the level: rejections are counted by address, failures by their place. Only the first failure of a
 * place has its cause, and only the first warning of an address a line.
 */
const createRepeats = (later: (act: () => void, ms: number) => void, logger: Logger) => {
  const sum = (codes: Readonly<Record<string, number>>): number => Object.values(codes).reduce((a, b) => a + b, 0);
  const rejections = createMinuteCounts(later, 1, (address, codes) =>
    logger.warn({ event: 'rejections', address, count: sum(codes), codes }),
  );
  const failures = createMinuteCounts(later, 0, (error, codes) =>
    logger.error({ event: 'suppressed', of: 'request', count: sum(codes), codes, error }),
  );
  return {
    /** Counts it. Is there a line about the same already? */
    note: (observation: Observation): boolean => {
      if (observation.kind === 'warning')
        return observation.address !== undefined && !rejections.add(networkOf(observation.address), observation.code);
      if (observation.kind !== 'request' || observation.code === null) return false;
      const { code, address, error } = observation;
      if (rejectedCodes.has(code)) rejections.add(networkOf(address), code);
      return isFailure(observation) && !failures.add(placeOf(error), code);
    },
    flush: (): void => {
      rejections.flush();
      failures.flush();
    },
  };
};

/** What limits count an address by, spelled so that firewalls take it. */
const networkOf = (address: string): string => {
  const network = limitedNetworkOf(address);
  return network?.includes(':') ? `${network}::/64` : (network ?? '');
};

/**
 * Where an error was thrown, with its name and code and those of its causes, since a database's client makes all of its errors in one place. Messages may
 * differ from one to the next.
 */
const placeOf = (error: unknown): string => {
  if (!(error instanceof Error)) return cut(String(error));
  const kinds: string[] = [];
  for (let one: unknown = error; one instanceof Error && kinds.length <= causesMax; one = one.cause) {
    const { code } = one as { code?: unknown }; // node's errors and ours have one
    kinds.push(code === undefined ? one.name : `${one.name} ${code}`);
  }
  return cut(`${kinds.join(', ')} ${/^ *(at .*)$/m.exec(error.stack ?? '')?.[1] ?? ''}`);
};

const laterUnref = (act: () => void, ms: number): void => {
  setTimeout(act, ms).unref();
};
