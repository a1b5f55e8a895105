// A mirror that runs until it is stopped, session after session, across restarts of either side. It knows why a stream is not being copied, and
// asks the target after every interruption where each stream resumes (D102, D103).
import { type Client, SealpostError } from '@sealpost/client';
import { backoffMs, type FeedId, type ReportJson, type Stream, timeResolutionOf } from '@sealpost/protocol';
import type { MirrorPlace } from '@sealpost/server/ingest/mirror';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import { StoreError } from '@sealpost/server/store/store';
import { CommandError } from '../../failure.ts';
import { formatNumberOf, formatSecond } from '../../formats.ts';
import { describeRemote, serverAddress } from '../../remote-client.ts';
import { TransientError } from '../ingest/remote.ts';
import type { MirrorCatalog } from './catalog.ts';
import { type StreamSpan, startAfter } from './pages.ts';
import { runSession, type SessionFindings, sleepUntil } from './session.ts';
import type { LiveDelivery } from './source.ts';
import { type MirrorTarget, noStreams } from './target.ts';

export type MirrorParts = {
  readonly url: URL;
  readonly client: Client;
  readonly target: MirrorTarget;
  readonly catalog: MirrorCatalog;
  /** First second that was asked for. */
  readonly from: number | undefined;
  readonly restart: boolean;
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
  /** Prints a line for the user. */
  readonly tell: (text: string) => void;
  /** New streams, signer sets and ends of streams are looked for this often; a minute unless given. */
  readonly refreshMs?: number;
};

/** The state of one stream that the target does not know. */
type Copy = {
  /** How far an open range was read: the target only knows whether all of it was. */
  read: { readonly start: number; readonly until: number; readonly next: number } | undefined;
  /** The bytes of the report that was acknowledged last; only of a stream that counts milliseconds. */
  newest: string | undefined;
  /** Not tried before; a clock that never goes back. */
  retryAtMs: number;
  /** How often in a row it was held up. */
  holds: number;
};

type Run = MirrorParts & {
  readonly copies: Map<FeedId, Copy>;
  readonly live: LiveDelivery;
  /** Streams that the source rejected when they were last read. */
  readonly refused: Set<FeedId>;
  readonly told: Set<string>;
  feedIds: readonly FeedId[];
  /** Streams that have ended at the source and not yet at the target. */
  ending: readonly Stream[];
  filled: ReadonlyMap<FeedId, number>;
  refreshAtMs: number;
  isStarted: boolean;
};

const refreshMsDefault = 60_000;
const holdMinMs = 2_000;
const holdMaxMs = 60_000;
const refusedHoldMs = 600_000;
const backOffMinMs = 250;
const backOffMaxMs = 10_000;

/** Copies until the signal is aborted. Failures that may pass are waited for, also at the start: both sides may be restarting. */
export async function* runMirror(parts: MirrorParts): AsyncGenerator<readonly LineResult[]> {
  const { signal, tell } = parts;
  const run: Run = {
    ...parts,
    copies: new Map(),
    live: { isRefused: false, ended: undefined },
    refused: new Set(),
    told: new Set(),
    feedIds: [],
    ending: [],
    filled: new Map(),
    refreshAtMs: 0,
    isStarted: false,
  };
  let line = 0;
  let lastProblem: string | undefined;
  for (let failures = 0; !signal.aborted; ) {
    try {
      for await (const results of copyOnce(run)) {
        // A session may begin with reports that the target has: only a new one is progress.
        if (results.some(({ result }) => result === 'stored')) [failures, lastProblem] = [0, undefined];
        yield results.map((result) => ({ ...result, line: ++line }));
      }
    } catch (error) {
      if (signal.aborted) return;
      const problem = describeTransient(error, parts.url);
      if (problem === undefined) throw error;
      if (problem.key !== lastProblem) tell(`warning: ${problem.text} Retrying.`);
      lastProblem = problem.key;
      failures += 1;
      await sleepUntil(backoffMs(failures, backOffMinMs, backOffMaxMs), signal);
    }
  }
}

type Problem = { readonly key: string; readonly text: string };

/** A transient failure; undefined if a retry is useless. Equal failures have equal keys. */
const describeTransient = (error: unknown, url: URL): Problem | undefined => {
  if (error instanceof TransientError) return { key: error.problem, text: error.problem };
  if (!(error instanceof SealpostError) || !error.retryable) return undefined;
  return { key: error.code, text: describeRemote(error, url).problem };
};

/** From asking where each stream resumes to the end of a session. */
async function* copyOnce(run: Run): AsyncGenerator<readonly LineResult[]> {
  const { target, signal, url } = run;
  if (performance.now() >= run.refreshAtMs) await refresh(run);
  const places = await resume(run);
  const spans = selectSpans(run, places);
  if (!run.isStarted) start(run, places, spans);
  if (spans.length === 0) {
    await sleepUntil(holdMinMs, signal);
    return;
  }
  const stop = new AbortController();
  const onAbort = () => stop.abort();
  signal.addEventListener('abort', onAbort);
  for (const { feedId } of spans) run.refused.delete(feedId);
  const findings = createFindings(run, stop, places);
  const stopSupervision = supervise(run, spans, stop);
  const startedMs = performance.now();
  const { client, nowMs, live } = run;
  const endedBefore = live.ended;
  try {
    if (signal.aborted) return;
    const warn = (text: string) => run.tell(`warning: ${url.host}: ${text}`);
    const isWhole = yield* runSession(spans, { client, target, live, nowMs, warn, findings, stop });
    const read = isWhole ? spans.filter(({ feedId }) => !run.refused.has(feedId)) : [];
    run.filled = new Map(read.flatMap(({ feedId, until }) => (until === null ? [] : [[feedId, until]])));
  } finally {
    signal.removeEventListener('abort', onAbort);
    stopSupervision();
  }
  if (live.ended !== undefined && live.ended !== endedBefore)
    throw new TransientError(`${url.host}: Live delivery ended (${live.ended.message})`);
  if (performance.now() - startedMs < backOffMinMs) await sleepUntil(backOffMinMs, signal); // one that ends at once must not spin
}

const resume = async (run: Run): Promise<readonly MirrorPlace[]> => {
  const { target, url, feedIds, from, signal, filled } = run;
  const restart = run.restart && !run.isStarted;
  const source = serverAddress(url).replace(/^.*:\/\//, '');
  const places = await target.resume({ source, feedIds, from, restart, filled }, signal);
  run.filled = new Map();
  return places;
};

const copyOf = ({ copies }: Run, feedId: FeedId): Copy => {
  const created = { read: undefined, newest: undefined, retryAtMs: 0, holds: 0 };
  const copy: Copy = copies.get(feedId) ?? created;
  copies.set(feedId, copy);
  return copy;
};

/** The streams to copy now: registered, not ended, and not held up. */
const selectSpans = (run: Run, places: readonly MirrorPlace[]): readonly StreamSpan[] =>
  places.flatMap(({ feedId, start, until }): readonly StreamSpan[] => {
    const { read, retryAtMs } = copyOf(run, feedId);
    if (start === null || performance.now() < retryAtMs) return [];
    const isSame = read?.until === until && read.start <= start;
    return [{ feedId, start: isSame ? Math.max(start, read.next) : start, until }];
  });

const start = (run: Run, places: readonly MirrorPlace[], spans: readonly StreamSpan[]): void => {
  const { url, tell } = run;
  if (spans.length === 0) throw noStreams();
  tellUnregistered(run, places);
  const earliest = Math.min(...spans.map((span) => span.start));
  tell(`Following ${formatNumberOf(spans.length, 'stream')} of ${url.host} from ${formatSecond(earliest)}.`);
  run.isStarted = true;
};

const tellUnregistered = (run: Run, places: readonly MirrorPlace[]): void => {
  const unknown = places.filter(({ feedId, status }) => status === null && !run.told.has(feedId));
  const [first] = unknown;
  if (first === undefined) return;
  for (const { feedId } of unknown) run.told.add(feedId);
  const are = unknown.length === 1 ? ' is' : ` and ${formatNumberOf(unknown.length - 1, 'other')} are`;
  run.tell(
    `warning: ${first.feedId}${are} not in the target’s catalog and not copied. Register with sealpost stream import, or use --adopt.`,
  );
};

/** Asks the source for its streams, and registers what is new where that was asked for. Only the first failure of this is an end. */
const refresh = async (run: Run): Promise<void> => {
  const { catalog, target, tell, refreshMs = refreshMsDefault } = run;
  try {
    run.feedIds = await catalog.feeds();
    if (catalog.registers) run.ending = await catalog.register(target.administer, run.feedIds);
    run.refreshAtMs = performance.now() + refreshMs;
  } catch (error) {
    const isExpected = [SealpostError, CommandError, StoreError].some((kind) => error instanceof kind);
    if (!run.isStarted || !isExpected) throw error;
    run.refreshAtMs = performance.now() + refreshMs;
    const { message } = error as Error; // one of those above
    if (!run.told.has(message)) tell(`warning: The list of streams was not refreshed: ${message}`);
    run.told.add(message);
  }
};

/**
 * Watches over a session from outside: stops it when there is something new to copy, or a stream that was held up may be tried again. Returns
 * how to end it.
 */
const supervise = (run: Run, spans: readonly StreamSpan[], stop: AbortController): (() => void) => {
  let isBusy = false;
  const copied = new Set(spans.map(({ feedId }) => feedId));
  const look = async (): Promise<void> => {
    await refresh(run);
    const places = await resume(run);
    await endStreams(run, places);
    tellUnregistered(run, places);
    if (selectSpans(run, places).some(({ feedId }) => !copied.has(feedId))) stop.abort();
  };
  const timer = setInterval(() => {
    const nowMs = performance.now();
    const isDue = (feedId: FeedId) => !copied.has(feedId) && (run.copies.get(feedId)?.retryAtMs ?? nowMs) < nowMs;
    if (isBusy || (nowMs < run.refreshAtMs && !run.feedIds.some((id) => run.copies.get(id)?.holds && isDue(id))))
      return;
    isBusy = true;
    look()
      .catch(() => {}) // the session itself shows what failed
      .finally(() => {
        isBusy = false;
      });
  }, 1_000);
  return () => clearInterval(timer);
};

/** Ends streams at the target that have ended at the source, once their last report is copied. */
const endStreams = async (run: Run, places: readonly MirrorPlace[]): Promise<void> => {
  const { client, catalog, target, signal } = run;
  const done: Stream[] = [];
  for (const stream of run.ending) {
    const place = places.find(({ feedId }) => feedId === stream.feedId);
    if (place?.start == null || place.until !== null) continue;
    const report = await readNewest(client, stream.feedId, signal);
    if (isCopied(copyOf(run, stream.feedId), place.start, report)) done.push(stream);
  }
  if (done.length > 0) await target.administer((admin) => catalog.end(admin, done));
};

/** True if the target has the newest report of the source, and all before it. */
const isCopied = ({ newest }: Copy, start: number, report: ReportJson | undefined): boolean => {
  if (report === undefined || report.observationsTimestamp < start) return true;
  // A stream that counts milliseconds resumes in the second of its newest report, which may have more.
  return report.observationsTimestamp === start && report.fullReport === newest;
};

/** Undefined: the source has none. */
const readNewest = async (client: Client, feedId: FeedId, signal: AbortSignal): Promise<ReportJson | undefined> => {
  try {
    return (await client.latest(feedId, { signal })).report;
  } catch (error) {
    if (error instanceof SealpostError && error.status === 404) return undefined;
    throw error;
  }
};

const createFindings = (run: Run, stop: AbortController, places: readonly MirrorPlace[]): SessionFindings => {
  const placeOf = new Map(places.map((place) => [place.feedId, place]));
  const hold = (feedId: FeedId, holdMs: (copy: Copy) => number): void => {
    const copy = copyOf(run, feedId);
    copy.retryAtMs = performance.now() + holdMs(copy);
    copy.holds += 1;
  };
  const tellOnce = (key: string, text: string): void => {
    if (!run.told.has(key)) run.tell(`warning: ${text}`);
    run.told.add(key);
  };
  return {
    copied: (feedId, report) => {
      const copy = copyOf(run, feedId);
      if (copy.holds > 0) for (const key of run.told) if (key.startsWith('blocked ')) run.told.delete(key);
      const { start = null, until = null } = placeOf.get(feedId) ?? {};
      if (start !== null && until !== null) copy.read = { start, until, next: startAfter(feedId, [report], 0) };
      if (timeResolutionOf(feedId) === 'milliseconds') copy.newest = report.fullReport;
      copy.holds = 0;
    },
    blocked: (feedId, code, message) => {
      hold(feedId, ({ holds }) => backoffMs(holds, holdMinMs, holdMaxMs));
      run.refreshAtMs = 0; // a new signer set or stream at the source, perhaps
      tellOnce(`blocked ${code}`, `${code}: ${message} Affected streams wait; the first is ${feedId}.`);
    },
    rejected: (feedId, code, message) =>
      tellOnce(
        `rejected ${code}`,
        `${code}: ${message} First seen on ${feedId}. Not copied; see sealpost quarantine list.`,
      ),
    refused: (feedId, error) => {
      run.refused.add(feedId);
      // Streams that wait for the target are not in this session, and may be readable.
      const isNothingLeft = places.every((place) => place.start === null || run.refused.has(place.feedId));
      if (error.code === 'unauthorized' || isNothingLeft) throw error;
      hold(feedId, () => refusedHoldMs);
      tellOnce(`refused ${feedId}`, `${run.url.host} rejects ${feedId} (${error.message}) Other streams continue.`);
      // Live delivery was rejected as a whole, perhaps because of this stream.
      if (run.live.isRefused) stop.abort();
      run.live.isRefused = false;
    },
  };
};
