// What a check works with: requests, the sampled streams, the reports seen so far, and live connections that are opened once and shared.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ReportJson, type SignerSets, timeResolutionOf } from '@sealpost/protocol';
import type { RequestToSend } from './exchange.ts';
import { openWatch, type Watch } from './live.ts';
import type { Pace } from './pace.ts';
import { createReportPool, type ReportPool, reportsOf, shapeProblem } from './reports.ts';
import type { Ask, AskChanges, Requester } from './requester.ts';
import { createSample, isAlwaysOn, type ReportingStream, type Sample, targets } from './sample.ts';
import { MismatchError, SkipError } from './verdict.ts';

/** The bounds that checks compare with. */
export type CheckRules = {
  /** How far a signed timestamp may be from the server's clock. */
  readonly skewMaxMs: number;
  /** An answer or a frame that takes longer is late. */
  readonly slowAfterMs: number;
  /** A live stream that is this far behind the others has stopped. */
  readonly staleAfterMs: number;
  /** Longest time to wait for frames, pings and new reports. */
  readonly liveMs: number;
};

/** A report that came into being while live connections were open. */
export type FreshReport = {
  readonly feedId: string;
  readonly report: ReportJson;
  /** When REST returned it, by `performance.now`. */
  readonly atMs: number;
};

export type CheckContext = {
  readonly rules: CheckRules;
  readonly ask: Ask;
  readonly requester: Requester;
  readonly pace: Pace;
  readonly sample: Sample;
  readonly pool: ReportPool;
  /** Streams that the operator knows to be hidden. */
  readonly hiddenIds: readonly string[];
  /** The signer sets that reports verify against; rejects with a `SkipError` if none are known. */
  readonly signers: () => Promise<SignerSets>;
  /** The shared connection of a version, subscribed to the sampled streams. Rejects if it could not be opened. */
  readonly watch: (version: 1 | 2) => Promise<Watch>;
  /** The shared connection to an origin. It may have failed to open. */
  readonly watchOrigin: (origin: string) => Promise<Watch>;
  /** A connection of one check, ended with the run at the latest. */
  readonly handshake: (target: string, changes?: AskChanges) => Promise<Watch>;
  /** Waits for a sampled stream to have a new report over REST, after the shared connection was opened; undefined if none has in time. */
  readonly newReport: () => Promise<FreshReport | undefined>;
  /** Resolves when the condition holds, or after `maxMs`. */
  readonly until: (holds: () => boolean, maxMs: number) => Promise<boolean>;
  /** Ends every connection. */
  readonly close: () => void;
};

export type CheckContextParts = {
  readonly wsUrl: URL;
  readonly requester: Requester;
  readonly pace: Pace;
  readonly rules: CheckRules;
  readonly timeoutMs: number;
  readonly feedIds: readonly string[];
  readonly hiddenIds: readonly string[];
  readonly signers: (ask: Ask) => Promise<SignerSets>;
  readonly signal: AbortSignal;
};

const pollMs = 25;
/** REST is asked this often for a new report. */
const restPollMs = 250;

export function createCheckContext(parts: CheckContextParts): CheckContext {
  const { requester, rules, signal } = parts;
  const pool = createReportPool();
  const ask: Ask = async (target, changes) => {
    const answer = await requester.ask(target, changes);
    if (target.startsWith('/api/v1/reports')) pool.add(reportsOf(answer.json), answer.request);
    return answer;
  };
  const sample = createSample(ask, parts.feedIds);
  const until: CheckContext['until'] = async (holds, maxMs) => {
    const endMs = performance.now() + maxMs;
    while (!holds() && performance.now() < endMs) await sleep(pollMs, undefined, { signal });
    return holds();
  };
  const watches: Watch[] = [];
  const handshake: CheckContext['handshake'] = async (target, changes = {}) => {
    const request: RequestToSend = { method: 'GET', target, signed: {}, headers: {}, ...changes, isUpgrade: true };
    await parts.pace.turn(target.split('?', 1)[0] ?? target, signal);
    signal.throwIfAborted(); // a connection that opens after the run would stay open
    const watch = openWatch(parts, request);
    watches.push(watch);
    await watch.opened;
    return watch;
  };
  const shared = new Map<string, Promise<Watch>>();
  const share = (key: string, open: () => Promise<Watch>): Promise<Watch> => {
    const opening = shared.get(key) ?? open();
    shared.set(key, opening);
    return opening;
  };
  const subscribe = async (version: 1 | 2, changes?: AskChanges): Promise<Watch> => {
    const feedIds = (await sample.streams()).map(({ feedId }) => feedId);
    return handshake(`/api/v${version}/ws?feedIDs=${feedIds.join(',')}`, changes);
  };
  const watch: CheckContext['watch'] = (version) =>
    share(`v${version}`, async () => requireOpen(await subscribe(version)));
  let waiting: Promise<FreshReport | undefined> | undefined;
  const context: CheckContext = {
    rules,
    ask,
    requester,
    pace: parts.pace,
    sample,
    pool,
    hiddenIds: parts.hiddenIds,
    signers: () => parts.signers(ask),
    watch,
    watchOrigin: (origin) => share(`origin ${origin}`, () => subscribe(1, { headers: { 'X-Cll-Origin': origin } })),
    handshake,
    newReport: () => {
      waiting ??= waitForReport(context, signal);
      return waiting;
    },
    until,
    close: () => {
      for (const one of watches) one.end();
    },
  };
  return context;
}

const requireOpen = async (watch: Watch): Promise<Watch> => {
  const result = await watch.opened;
  if (result.ok) return watch;
  if (result.refusal?.status === 404)
    throw new SkipError('The deployment has no WebSocket: the handshake returned 404.');
  throw new MismatchError('101 Switching Protocols', result.problem, watch.request);
};

/** Streams whose next report may be waited for: those in seconds, live ones first. */
const awaited = (streams: readonly ReportingStream[]): readonly ReportingStream[] => {
  const seconds = streams.filter(({ feedId }) => timeResolutionOf(feedId) === 'seconds');
  const live = seconds.filter(({ entry }) => isAlwaysOn(entry) !== false);
  return (live.length > 0 ? live : seconds).slice(0, 2);
};

const waitForReport = async (
  { ask, sample, watch, rules }: CheckContext,
  signal: AbortSignal,
): Promise<FreshReport | undefined> => {
  const streams = awaited(await sample.reporting());
  await watch(1).catch(() => {}); // its own check tells
  const first = new Map<string, number>();
  const endMs = performance.now() + rules.liveMs;
  while (performance.now() < endMs) {
    for (const { feedId } of streams) {
      const { json } = await ask(targets.latest(feedId));
      const { report } = Object(json);
      if (shapeProblem(report) !== undefined) continue;
      const before = first.get(feedId);
      if (before !== undefined && report.observationsTimestamp > before)
        return { feedId, report, atMs: performance.now() };
      if (before === undefined) first.set(feedId, report.observationsTimestamp);
    }
    await sleep(restPollMs, undefined, { signal });
  }
  return undefined;
};
