// What was acknowledged in a soak, compared with what deployments give back; and which of the clients' failures the documents allow.
import type { FeedId } from '@sealpost/protocol';
import type { ReportStore } from '../../server/src/store/store.ts';
import type { Acknowledged } from '../faults/node-load.ts';
import type { Failure } from './clients.ts';

/** Acknowledged reports up to a second. */
export const acknowledgedUntil = (acknowledged: Acknowledged, until: number): Acknowledged =>
  new Map(
    [...acknowledged].map(([feedId, sent]) => [feedId, new Map([...sent].filter(([second]) => second <= until))]),
  );

/** A copy that does not grow with the original. */
export const copyOf = (acknowledged: Acknowledged): Acknowledged => acknowledgedUntil(acknowledged, Infinity);

export const sizeOf = (acknowledged: Acknowledged): number =>
  [...acknowledged.values()].reduce((sum, sent) => sum + sent.size, 0);

/** Acknowledged reports that a store does not have, byte for byte. */
export const countMissing = async (reports: Pick<ReportStore, 'at'>, acknowledged: Acknowledged): Promise<number> => {
  let missing = 0;
  for (const [feedId, sent] of acknowledged)
    for (const [second, fullReport] of sent) {
      const [found] = await reports.at([feedId as FeedId], second);
      if (found === undefined || `0x${Buffer.from(found.fullReport).toString('hex')}` !== fullReport) missing += 1;
    }
  return missing;
};

/** Something that the documents allow to fail while it lasts, and until clients have recovered from it. */
export type Allowance = { readonly fromMs: number; readonly toMs: number; readonly failures: RegExp };

/** Failures that nothing allows, each with its kind of client. */
export const forbiddenFailures = (
  failures: readonly Failure[],
  allowances: readonly Allowance[],
  recoveryMs: number,
): readonly Failure[] =>
  failures.filter(
    ({ atMs, kind, text }) =>
      !allowances.some(
        (one) => atMs >= one.fromMs && atMs <= one.toMs + recoveryMs && one.failures.test(`${kind}: ${text}`),
      ),
  );
