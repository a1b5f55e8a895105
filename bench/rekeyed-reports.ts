// Reports for a store to hold by the million: one signed report, its times, prices and signatures replaced word by word. They fill
// pages and blocks as real ones do and cost nothing to make; nothing that checks a signature may see them.
import { type FeedId, parseFeedId } from '@sealpost/protocol';
import vectors from '../protocol/src/vectors/verification.json' with { type: 'json' };
import type { Store, StoredReport } from '../server/src/store/store.ts';

const template = Buffer.from((vectors.cases[0] as { fullReport: string }).fullReport.slice(2), 'hex');
const word = 32;
/** Words of a two-signature version 3 report: epoch and round, feed id, validFrom, observations, fees, expiry, three prices, r and s. */
const places = {
  round: 1,
  feedId: 8,
  validFrom: 9,
  observations: 10,
  nativeFee: 11,
  linkFee: 12,
  expiresAt: 13,
  prices: [14, 15, 16],
  signatures: [18, 19, 21, 22],
};

export const benchStreams: readonly FeedId[] = Array.from({ length: 24 }, (_, i) =>
  parseFeedId(`0x0003${(i + 1).toString(16).padStart(60, 'a')}`),
);

export const firstSecond = 1_700_000_000;

// xorshift: fast, and even enough that signatures do not compress.
const createNoise = (seed: number) => {
  let state = 0x9e3779b9 ^ seed;
  return (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
};

/** A report of a window in seconds; of the same seed it has the same bytes. */
export const rekeyedReport = (feedId: FeedId, validFrom: number, observations: number, seed: number): StoredReport =>
  rekey(feedId, validFrom, observations, createNoise(seed));

const rekey = (feedId: FeedId, validFrom: number, observations: number, noise: () => number): StoredReport => {
  const fullReport = Buffer.from(template);
  const low = (at: number, value: number) => fullReport.writeUInt32BE(value, at * word + 28);
  fullReport.write(feedId.slice(2), places.feedId * word, 'hex');
  low(places.round, observations);
  low(places.validFrom, validFrom);
  low(places.observations, observations);
  low(places.expiresAt, observations + 2_592_000);
  for (const at of [places.nativeFee, places.linkFee, ...places.prices]) low(at, noise());
  for (const at of places.signatures)
    for (let i = 0; i < word; i += 4) fullReport.writeUInt32BE(noise(), at * word + i);
  return { feedId, validFromMs: validFrom * 1_000, observationsMs: observations * 1_000, fullReport };
};

/** One report for each of the streams, the 24 where none are given, for each second from `from` on, `seconds` times. */
export function* rekeyedReports(
  from: number,
  seconds: number,
  feedIds: readonly FeedId[] = benchStreams,
): Generator<readonly StoredReport[]> {
  const noise = createNoise(from);
  for (let second = from; second < from + seconds; second++)
    yield feedIds.map((feedId) => rekey(feedId, second, second, noise));
}

/** Appends `seconds` of every stream from `from` on, in durable batches of so many seconds. */
export const fill = async (store: Store, from: number, seconds: number, batchSeconds = 10): Promise<void> => {
  let batch: StoredReport[] = [];
  for (const reports of rekeyedReports(from, seconds)) {
    batch.push(...reports);
    if (batch.length < batchSeconds * benchStreams.length) continue;
    await store.reports.append(batch);
    batch = [];
  }
  if (batch.length > 0) await store.reports.append(batch);
};
