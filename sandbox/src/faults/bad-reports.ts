// Makes bad reports of good ones, on their way out: the store has good ones only.
import {
  decodeFullReport,
  encodeFullReport,
  type FeedId,
  type FullReport,
  type Hex,
  headlinePriceOf,
  readReportBody,
  reportSchemas,
  type Signature,
  secondsMax,
  timeResolutionOf,
  windowOf,
  withFields,
} from '@sealpost/protocol';
import type { Decisions, FaultSubject } from './decisions.ts';
import { parsedMs } from './fields.ts';
import type { FaultKind, FaultOf } from './kinds.ts';

/**
 * Signs a body as the oracles of a config digest do, and returns the full report; undefined for a digest whose keys it does not have. `sign` of a
 * simulated network is one.
 */
export type SignReport = (body: Hex, epochAndRound: number, configDigest: Hex) => Hex | undefined;

/** A report in JSON, as answers, events or frames of either WebSocket have it. */
export type SentReport = {
  readonly feedID: FeedId;
  readonly fullReport: string;
  readonly validFromTimestampMs?: number;
};

export type BadReportParts = {
  readonly decisions: Pick<Decisions, 'first' | 'has'>;
  readonly sign: SignReport | undefined;
  /** The f of a signer set; undefined where it is not registered. */
  readonly toleratedOf: (configDigest: string) => number | undefined;
};

/** The faults that change a report, in the order in which they are applied. */
export const badReportKinds = [
  'two-reports',
  'wrong-window',
  'altered-body',
  'wrong-signer',
  'few-signatures',
] as const satisfies readonly FaultKind[];

type BadReportKind = (typeof badReportKinds)[number];

const windowShiftDefault = '-60s';

/** When a report was observed, to the ms. */
export const observedMs = ({ fullReport }: SentReport): number =>
  windowOf(readReportBody(decodeFullReport(fullReport).body)).observationsMs;

export type BadReports = ReturnType<typeof createBadReports>;

/** Applies the faults that are set to reports. `noted` hears which. */
export function createBadReports({ decisions, sign, toleratedOf }: BadReportParts) {
  const resign = ({ context }: FullReport, body: Hex): FullReport | undefined => {
    const { epochAndRound, configDigest } = context;
    const signed = sign?.(body, Number(BigInt(epochAndRound)), configDigest);
    return signed === undefined ? undefined : decodeFullReport(signed);
  };
  const changes: { readonly [K in BadReportKind]: (full: FullReport, fault: FaultOf<K>) => FullReport | undefined } = {
    'two-reports': (full) => resign(full, withOtherPrice(full.body)),
    'wrong-window': (full, { shift = windowShiftDefault }) => resign(full, withOtherWindow(full.body, parsedMs(shift))),
    'altered-body': (full) => ({ ...full, body: withOtherPrice(full.body) }),
    'wrong-signer': ({ signatures, ...full }) => ({
      ...full,
      signatures: [...signatures.slice(0, -1), ...signatures.slice(-1).map(bySomeoneElse)],
    }),
    'few-signatures': ({ signatures, ...full }) => {
      const few = toleratedOf(full.context.configDigest) ?? signatures.length - 1;
      return { ...full, signatures: signatures.slice(0, few) };
    },
  };
  const change = <K extends BadReportKind, R extends SentReport>(kind: K, report: R, fault: FaultOf<K>): R => {
    const changed = changes[kind](decodeFullReport(report.fullReport), fault);
    return changed === undefined ? report : withFullReport(report, changed);
  };
  /** What is sent instead of a report: one, or two for the same window where `both` may be sent. */
  return <R extends SentReport>(
    report: R,
    scope: Omit<FaultSubject, 'feedIds'>,
    both: boolean,
    noted: (fault: ReturnType<Decisions['first']> & object) => void,
  ): readonly R[] => {
    if (!decisions.has(badReportKinds)) return [report];
    const subject = { ...scope, feedIds: [report.feedID] };
    let bad = [report];
    for (const kind of badReportKinds) {
      const acting = decisions.first(kind, subject, kind === 'two-reports' && !both);
      if (acting === undefined) continue;
      noted(acting);
      const changed = bad.map((one) => change(kind, one, acting.fault));
      bad = kind === 'two-reports' && both ? [...bad, ...changed] : changed;
    }
    return bad;
  };
}

/** The report with other bytes, and the times that these bytes say. */
const withFullReport = <R extends SentReport>(report: R, full: FullReport): R => {
  const { validFromMs, observationsMs } = windowOf(readReportBody(full.body));
  const times =
    report.validFromTimestampMs === undefined
      ? {
          validFromTimestamp: Math.floor(validFromMs / 1_000),
          observationsTimestamp: Math.floor(observationsMs / 1_000),
        }
      : { validFromTimestampMs: validFromMs, observationsTimestampMs: observationsMs };
  return { ...report, ...times, fullReport: encodeFullReport(full) };
};

/** Its price 1 % closer to zero, which fits wherever the price did; another fee where the price is not known. */
const withOtherPrice = (encoded: Hex): Hex => {
  const body = readReportBody(encoded);
  if (body.version === undefined) return withFields(encoded, { ...body, linkFee: body.linkFee ^ 1n });
  const { price } = reportSchemas[body.version].headline;
  const before = headlinePriceOf(body);
  return withFields(encoded, { ...body, [price]: before - before / 100n - (before < 0n ? -1n : 1n) });
};

const withOtherWindow = (encoded: Hex, shiftMs: number): Hex => {
  const body = readReportBody(encoded);
  const unitMs = timeResolutionOf(body.feedId) === 'milliseconds' ? 1 : 1_000;
  const shift = Math.sign(shiftMs) * Math.max(1, Math.floor(Math.abs(shiftMs) / unitMs));
  const latest = unitMs === 1 ? secondsMax * 1_000 : secondsMax;
  const move = (time: number): number => Math.min(latest, Math.max(0, time + shift));
  const observationsTimestamp = move(body.observationsTimestamp);
  if (body.version === 1) return withFields(encoded, { ...body, observationsTimestamp });
  const [validFromTimestamp, expiresAt] = [move(body.validFromTimestamp), move(body.expiresAt)];
  return withFields(encoded, { ...body, validFromTimestamp, observationsTimestamp, expiresAt });
};

/** Every r and s is a proper signature of some key: with another s it is that of a key which nobody has. */
const bySomeoneElse = ({ r, s, v }: Signature): Signature => {
  const other = BigInt(s) > 1n ? BigInt(s) - 1n : 2n;
  return { r, v, s: `0x${other.toString(16).padStart(64, '0')}` };
};
