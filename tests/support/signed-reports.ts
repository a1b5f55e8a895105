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

/** Reports kept of each seed, in some 20 MB: tests of one process sign the same ones again and again, which was most of what an engine's contract took. */
const keptMax = 20_000;
const created = new Map<string, Promise<SignedReports>>();

/** The same seed gives the same reports; each call of `report` has bytes of its own. */
export const createSignedReports = (seed = 'tests'): Promise<SignedReports> => {
  const known = created.get(seed) ?? create(seed);
  created.set(seed, known);
  return known;
};

const create = async (seed: string): Promise<SignedReports> => {
  const { signerSet, sign } = await createNetwork({ seed });
  const kept = new Map<string, Buffer>();
  return {
    signerSets: new Map([[signerSet.configDigest, signerSet]]),
    report: (feedId, validFrom, observations, price = 10n ** 18n, round = observations % 2 ** 32) => {
      const unitMs = feedId.startsWith('0x1') ? 1 : 1_000;
      const expiresAt = observations + (30 * 86_400 * 1_000) / unitMs;
      const fees = { nativeFee: 1n, linkFee: 2n };
      const name = `${feedId} ${validFrom} ${observations} ${price} ${round}`;
      const signed = (): Buffer => {
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
        return Buffer.from(sign(body, round).slice(2), 'hex');
      };
      const bytes = kept.get(name) ?? signed();
      if (kept.size >= keptMax) kept.clear();
      kept.set(name, bytes);
      const fullReport = Buffer.from(bytes);
      return { feedId, validFromMs: validFrom * unitMs, observationsMs: observations * unitMs, fullReport };
    },
  };
};
