// Really signed reports for tests, with any window: the simulator's oracles sign what a test asks for.
import { encodeReportBody, type FeedId, type SignerSets } from '@sealpost/protocol';
import { createNetwork } from '@sealpost/simulator';
import type { StoredReport } from '../../server/src/store/store.ts';

export { millisecondStream, secondStream } from './samples.ts';

export type SignedReports = {
  readonly signerSets: SignerSets;
  /** A version 3 report of a window in the feed id's own resolution; `price` makes its body differ, `round` only who signs it. */
  readonly report: (
    feedId: FeedId,
    validFrom: number,
    observations: number,
    price?: bigint,
    round?: number,
  ) => StoredReport;
};

export const createSignedReports = async (seed = 'tests'): Promise<SignedReports> => {
  const { signerSet, sign } = await createNetwork({ seed });
  return {
    signerSets: new Map([[signerSet.configDigest, signerSet]]),
    report: (feedId, validFrom, observations, price = 10n ** 18n, round = observations % 2 ** 32) => {
      const unitMs = feedId.startsWith('0x1') ? 1 : 1_000;
      const expiresAt = observations + (30 * 86_400 * 1_000) / unitMs;
      const fees = { nativeFee: 1n, linkFee: 2n };
      const body = encodeReportBody({
        version: 3,
        feedId,
        validFromTimestamp: validFrom,
        observationsTimestamp: observations,
        ...fees,
        expiresAt,
        price,
        bid: price,
        ask: price,
      });
      const fullReport = Buffer.from(sign(body, round).slice(2), 'hex');
      return { feedId, validFromMs: validFrom * unitMs, observationsMs: observations * unitMs, fullReport };
    },
  };
};
