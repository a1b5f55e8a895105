// A report without signatures, for tests of what does not verify it.
import {
  encodeFullReport,
  encodeReportBody,
  type FeedId,
  type ReportBody,
  type ReportJson,
  timeResolutionOf,
} from '@sealpost/protocol';

const word = (digit: string) => `0x${digit.repeat(64)}` as const;
const context = { configDigest: word('a'), epochAndRound: word('b'), extraHash: word('c') };

/** A report that is valid from one time to another, in the unit of its stream. */
export const reportOf = (feedId: FeedId, from: number, to: number, price = 7n): ReportJson => {
  const body: ReportBody = {
    version: 2,
    feedId,
    validFromTimestamp: from,
    observationsTimestamp: to,
    nativeFee: 0n,
    linkFee: 0n,
    expiresAt: to,
    price,
  };
  const unit = timeResolutionOf(feedId) === 'milliseconds' ? 1_000 : 1;
  return {
    feedID: feedId,
    validFromTimestamp: Math.floor(from / unit),
    observationsTimestamp: Math.floor(to / unit),
    fullReport: encodeFullReport({ context, body: encodeReportBody(body), signatures: [] }),
  };
};
