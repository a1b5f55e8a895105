// Which seconds of its past a demo has not signed yet: the whole of it at the first start, what an interruption left out at the next ones.
import { type FeedId, schemaVersionOf } from '@sealpost/protocol';
import { createStreams, type TimeRange } from '@sealpost/simulator';
import type { ReportStore } from '../../../store/store.ts';

/** Streams to check: a batch of the demo has the same seconds of all streams, so any of them is representative. */
const witnesses = 3;

/** Streams with a report for every second, whatever the market hours. */
export const witnessIds = (): readonly FeedId[] =>
  createStreams('testnet')
    .filter(({ intervalSeconds, stream }) => intervalSeconds === 1 && stream.feedType === 'Crypto')
    .filter(({ stream }) => stream.status !== 'decommissioned' && schemaVersionOf(stream.feedId) === 3)
    .slice(0, witnesses)
    .map(({ stream }) => stream.feedId);

/** Spans closer than this are signed as one: what lies between is recognized as stored. */
const joinedSeconds = 30;

/** The spans of seconds, both ends included, in which no simulated report is stored; the newest first. */
export const findGaps = async (reports: ReportStore, { from, to }: TimeRange): Promise<readonly TimeRange[]> => {
  const stored = new Set<number>();
  for (const feedId of witnessIds()) {
    for (const { observationsMs } of await reports.windows(feedId, from, to, to - from + 1))
      stored.add(observationsMs / 1_000);
  }
  const gaps: { from: number; to: number }[] = [];
  for (let second = from; second <= to; second++) {
    if (stored.has(second)) continue;
    const last = gaps.at(-1);
    if (last !== undefined && second - last.to <= joinedSeconds) last.to = second;
    else gaps.push({ from: second, to: second });
  }
  return gaps.reverse();
};

/** What of some spans lies in another. */
export const cutSpans = (spans: readonly TimeRange[], { from, to }: TimeRange): readonly TimeRange[] =>
  spans
    .map((span) => ({ from: Math.max(span.from, from), to: Math.min(span.to, to) }))
    .filter((span) => span.from <= span.to);
