// Which seconds of its past a demo has not signed yet, and how densely it signs them: the whole of it at the first start, what an interruption left out at
// the next ones. The newest part comes first, so that a stream's stored reports have no gap at any time (D278).
import { type FeedId, schemaVersionOf } from '@sealpost/protocol';
import { coverageOf, windowsTouching } from '@sealpost/server/store/coverage';
import type { ReportStore } from '@sealpost/server/store/store';
import { createStreams, type TimeRange } from '@sealpost/simulator';

/** Seconds to sign, both ends included, with a report per `everySeconds` of each stream at most. */
export type PastSpan = TimeRange & { readonly everySeconds: number };

/** A stream with a report for every second, whatever the market hours. A batch of the demo has all streams, so any of them is representative. */
export function witnessId(): FeedId {
  const witness = createStreams('testnet')
    .filter(({ intervalSeconds, stream }) => intervalSeconds === 1 && stream.feedType === 'Crypto')
    .find(({ stream }) => stream.status !== 'decommissioned' && schemaVersionOf(stream.feedId) === 3);
  if (witness === undefined) throw new Error('No stream is simulated for every second.');
  return witness.stream.feedId;
}

/** The seconds for which no simulated report is valid; the newest first. */
export const findGaps = async (reports: ReportStore, range: TimeRange): Promise<readonly TimeRange[]> =>
  (await coverageOf(windowsTouching(reports, witnessId(), range), range)).gaps
    .map(({ from, to }) => ({ from, to }))
    .toReversed();

/** Signing a day of every second would take half an hour; these 82,000 reports take less than a minute on 2 cores. */
const densities = [
  { ageMaxSeconds: 360, everySeconds: 1 },
  { ageMaxSeconds: 3_600, everySeconds: 10 },
  { ageMaxSeconds: 86_400, everySeconds: 30 },
] as const;

const minute = 60;
const startOf = (second: number, step: number): number => Math.floor(second / step) * step;

/** The gaps as spans of one density each, the newest first. What is left of an interval at the ends of a gap is signed for every second. */
export function planPast(gaps: readonly TimeRange[], now: number): readonly PastSpan[] {
  const zones = densities.map(({ ageMaxSeconds, everySeconds }, i) => {
    const newer = densities[i - 1];
    const to = newer === undefined ? now : startOf(now - newer.ageMaxSeconds, minute) - 1;
    return { from: startOf(now - ageMaxSeconds, minute), to, everySeconds };
  });
  return gaps.flatMap((gap) =>
    zones.flatMap(({ everySeconds, ...zone }) =>
      cutSpans([gap], zone).flatMap((span) => alignSpan(span, everySeconds)),
    ),
  );
}

const alignSpan = ({ from, to }: TimeRange, everySeconds: number): readonly PastSpan[] => {
  const first = startOf(from + everySeconds - 1, everySeconds);
  const end = startOf(to + 1, everySeconds);
  if (first >= end) return [{ from, to, everySeconds: 1 }];
  const spans = [
    { from: end, to, everySeconds: 1 },
    { from: first, to: end - 1, everySeconds },
    { from, to: first - 1, everySeconds: 1 },
  ];
  return spans.filter((span) => span.from <= span.to);
};

/** What of some spans lies in another. */
export const cutSpans = <S extends TimeRange>(spans: readonly S[], { from, to }: TimeRange): readonly S[] =>
  spans
    .map((span) => ({ ...span, from: Math.max(span.from, from), to: Math.min(span.to, to) }))
    .filter((span) => span.from <= span.to);

const streamIntervals = (): readonly number[] =>
  createStreams('testnet')
    .filter(({ stream }) => stream.status !== 'decommissioned')
    .map(({ intervalSeconds }) => intervalSeconds);

/** About how many reports spans have. */
export function countReports(spans: readonly PastSpan[]): number {
  const intervals = streamIntervals();
  return spans.reduce(
    (sum, { from, to, everySeconds }) =>
      sum + intervals.reduce((all, interval) => all + (to - from + 1) / Math.max(interval, everySeconds), 0),
    0,
  );
}
