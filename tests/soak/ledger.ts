// What was acknowledged in a soak, compared with what deployments give back.
import type { FeedId } from '@sealpost/protocol';
import type { ReportStore } from '../../server/src/store/store.ts';
import type { Acknowledged } from '../faults/node-load.ts';

/** Acknowledged reports up to a second. */
export const acknowledgedUntil = (acknowledged: Acknowledged, until: number): Acknowledged =>
  new Map(
    [...acknowledged].map(([feedId, sent]) => [feedId, new Map([...sent].filter(([second]) => second <= until))]),
  );

/** A copy that does not grow with the original. */
export const copyOf = (acknowledged: Acknowledged): Acknowledged => acknowledgedUntil(acknowledged, Infinity);

export const sizeOf = (acknowledged: Acknowledged): number =>
  [...acknowledged.values()].reduce((sum, sent) => sum + sent.size, 0);

/** The newest second of each stream. */
export const newestOf = (acknowledged: Acknowledged): ReadonlyMap<FeedId, number> =>
  new Map([...acknowledged].map(([feedId, sent]) => [feedId, Math.max(...sent.keys())]));

const yieldEvery = 50;

/** Acknowledged reports that a store does not have, byte for byte. */
export const countMissing = async (reports: Pick<ReportStore, 'at'>, acknowledged: Acknowledged): Promise<number> => {
  let missing = 0;
  for (const [feedId, sent] of acknowledged)
    for (const [second, fullReport] of sent) {
      // The load is in this process: it goes on meanwhile.
      if (second % yieldEvery === 0) await new Promise((resolve) => setImmediate(resolve));
      const [found] = await reports.at([feedId as FeedId], second);
      if (found === undefined || `0x${Buffer.from(found.fullReport).toString('hex')}` !== fullReport) missing += 1;
    }
  return missing;
};
