// The log: which observations become a line, at which level, with which fields. Fields are listed one by one, so that no header, signature, secret or
// raw path is logged. A flood of warnings becomes a few lines and a count.
import { type Logger, pino } from 'pino';
import type { LogLevel } from '../config/values.ts';
import { type RequestEvent, sandboxFault } from '../http/pipeline.ts';
import { type ServedName, servedLabels } from '../http/target.ts';
import { shownAddressOf } from '../runtime/ip-address.ts';
import { memoise } from '../runtime/memo.ts';
import type { AdminReloadEvent } from '../store/admin-snapshot.ts';
import { cut, type Fields, type Line, roundMs } from './log-line.ts';
import type { Listener, Observation } from './observe.ts';
import { createRepeats, isFailure, isShedAnswer } from './repeats.ts';
import { type LogDestination, openStandardOutput } from './standard-output.ts';
import { storeLine } from './store-lines.ts';

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
export const openLog = (options: LogOptions): Log => {
  const timeOf = createClockText();
  const destination =
    options.destination ??
    openStandardOutput({
      onLost: options.onLost ?? (() => {}),
      onDropped: (count) => logger.warn({ event: 'suppressed', of: 'lines', count }),
    });
  const openLogger = (write: (line: string) => void): Logger =>
    pino(
      {
        level: options.level,
        base: { pid: process.pid },
        formatters: { level: (label) => ({ level: label }) },
        timestamp: () => `,"time":"${timeOf(options.nowMs())}"`,
      },
      { write: (line) => write(escapeControls(line)) },
    );
  const logger = openLogger((line) => destination.write(line, true));
  const requests = openLogger((line) => destination.write(line));
  const plainText = logger.isLevelEnabled('info')
    ? createPlainText(options.slowMs, () => timeOf(options.nowMs()))
    : () => undefined;
  const limit = createComplaintLimit(options, (of, count, codes) =>
    logger.warn({ event: 'suppressed', of, count, codes }),
  );
  const repeats = createRepeats(options.later ?? laterUnref, logger);
  return {
    observe: (observation) => {
      const text = observation.kind === 'request' ? plainText(observation) : undefined;
      if (text !== undefined) return destination.write(text);
      const isRepeat = repeats.note(observation);
      if (isRepeat && observation.kind === 'warning') return;
      const line = toLine(observation, options.slowMs, isRepeat);
      if (line.complaint !== undefined && !limit.take(observation.kind, line.complaint)) return;
      // Lines of plain answers, which every request has, are handed over together.
      (line.level === 'info' && observation.kind === 'request' ? requests : logger)[line.level](line.fields);
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
};

/** The text of a timestamp; its seconds are rendered once a second. */
const createClockText = (): ((ms: number) => string) => {
  let second = Number.NaN;
  let text = '';
  return (ms) => {
    const now = Math.floor(ms / 1_000);
    if (now !== second) {
      second = now;
      text = new Date(now * 1_000).toISOString().slice(0, -4);
    }
    const rest = ms - now * 1_000;
    return `${text}${rest < 10 ? '00' : rest < 100 ? '0' : ''}${rest}Z`;
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
  const isBad = code !== sandboxFault && !isRepeat && (slow || status >= 500);
  return {
    level: failed ? 'error' : isBad ? 'warn' : 'info',
    fields,
    ...(isShedAnswer(event) && { complaint: code ?? '' }),
  };
};

/** Methods of answers whose line is made by hand. */
const plainMethods: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/**
 * The line of a request without an error, as pino writes it: nearly every line is one, and made by hand it takes half the CPU. Undefined for any
 * other, and for values that need escapes.
 */
const createPlainText = (slowMs: number, time: () => string): ((event: RequestEvent) => string | undefined) => {
  const { pid } = process;
  const quote = memoise((text) => escapeControls(JSON.stringify(text)));
  const quoteAddress = memoise((text) => quote(shownAddressOf(text)));
  const routeTexts = new Map(Object.entries(servedLabels).map(([name, label]) => [name, quote(label)]));
  return ({ kind, requestId, userId, address, route, method, status, durationMs, bytes, code }) => {
    if (code !== null || status >= 500 || durationMs >= slowMs) return undefined;
    if (!plainMethods.has(method) || !plainId.test(requestId)) return undefined;
    const user = userId === null ? 'null' : quote(userId);
    const path = route === null ? 'null' : routeTexts.get(route);
    return `{"level":"info","time":"${time()}","pid":${pid},"event":"${kind}","requestId":"${requestId}","userId":${user},"address":${quoteAddress(address)},"route":${path},"method":"${method}","status":${status},"durationMs":${roundMs(durationMs)},"bytes":${bytes},"code":null}\n`;
  };
};

const plainId = /^[\w-]+$/;

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

const laterUnref = (act: () => void, ms: number): void => {
  setTimeout(act, ms).unref();
};
