// Pushes a report: signs it with the oracles of its time, and has the node serve it.
import { type FeedId, type Hex, type ReportJson, toReportJson } from '@sealpost/protocol';
import type { LineResult } from '@sealpost/server/ingest/report-line';
import type { AdminView } from '@sealpost/server/store/admin-snapshot';
import type { Window } from '@sealpost/server/store/store';
import { stepMaxMs } from '../clock.ts';
import type { SignReport } from '../faults/faults.ts';
import { createBody, type Moment, type PushedStream, type PushOptions, parseMoment, unitMsOf } from './body.ts';
import { SandboxError, unexpected } from './errors.ts';
import { type Price, parsePrice } from './prices.ts';

export type PushParts = {
  /** When a stream was last observed. */
  readonly newestMs: (feedId: FeedId) => number | undefined;
  readonly view: Pick<AdminView, 'current'>;
  readonly sign: SignReport;
  readonly ingest: (lines: readonly string[]) => Promise<readonly LineResult[]>;
};

export type PushedReport = {
  readonly stream: PushedStream;
  readonly price: Price;
  readonly options: PushOptions;
  /** Sandbox time. */
  readonly nowMs: number;
  /** Moves sandbox time to an observation that is ahead of it. */
  readonly moveTo?: (ms: number) => Promise<void>;
};

/** Signs a report of a stream and has the node serve it. Throws a SandboxError where it cannot be. */
export async function pushReport(
  { newestMs, view, sign, ingest }: PushParts,
  { stream, price, options, nowMs, moveTo }: PushedReport,
): Promise<ReportJson> {
  const scaled = parsePrice('price', price);
  const window = windowOf(stream, newestMs(stream.feedId), nowMs, options);
  const body = createBody(stream, scaled, window, options);
  const aheadMs = window.observationsMs - nowMs;
  if (aheadMs > stepMaxMs) throw unexpected('at', options.at, 'a time at most 31 days ahead of sandbox time');
  if (aheadMs > 0) await moveTo?.(window.observationsMs);
  const round = Math.floor(window.observationsMs / 1_000);
  const active = [...view.current().signerSets.values()].find(({ retiredAt }) => retiredAt === null);
  const report = toReportJson(stream.feedId, window, sign(body, round, active?.configDigest as Hex) as Hex); // a sandbox always has one set that signs
  const [result] = await ingest([JSON.stringify(report)]);
  if (result?.result === 'refused')
    throw new SandboxError('at', `The report of ${stream.name} was rejected: ${result.message} (${result.code})`);
  return report;
}

/** The window of the next report: right after the one before it, unless the options say otherwise. */
const windowOf = (
  stream: PushedStream,
  lastMs: number | undefined,
  sandboxMs: number,
  { at, validFrom }: PushOptions,
): Window => {
  const unitMs = unitMsOf(stream);
  const nextMs = lastMs === undefined ? 0 : lastMs + unitMs;
  const whole = (argument: string, moment: Moment): number => {
    const ms = parseMoment(argument, moment);
    if (ms % unitMs !== 0)
      throw unexpected(argument, moment, 'a whole second: reports of this stream have no finer times');
    return ms;
  };
  const nowMs = Math.floor(sandboxMs / unitMs) * unitMs;
  const observationsMs = at === undefined ? Math.max(nowMs, nextMs) : whole('at', at);
  const isNext = lastMs !== undefined && nextMs <= observationsMs;
  const validFromMs = validFrom === undefined ? (isNext ? nextMs : observationsMs) : whole('validFrom', validFrom);
  if (validFromMs > observationsMs)
    throw unexpected(
      'validFrom',
      validFrom,
      `${new Date(observationsMs).toISOString()}, when the price is observed, or before`,
    );
  return { validFromMs, observationsMs };
};
