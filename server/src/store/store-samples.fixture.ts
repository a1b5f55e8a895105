// What the contract's tests share: streams, signed reports, and the engine under test.
import { createSignedReports, millisecondStream, secondStream } from '../../../tests/support/signed-reports.ts';
import type { Store, StoredReport } from './store.ts';

/** An engine under test: a place that survives closing, opened as often as a test likes. */
export type EngineUnderTest = {
  readonly open: (mode: 'read' | 'write') => Promise<Store>;
  /** Where several processes may write at once, the sentence on a second writer is another one. */
  readonly writers: 'one' | 'many';
  /** What it has does not outlive its process, and is not kept from deletion. */
  readonly isFleeting?: true;
  readonly remove: () => Promise<void>;
};

/** Registers one sentence of the contract as a test. */
export type Contract = (sentence: string, check: () => Promise<void>) => void;

export const { report } = await createSignedReports();
export const stream = secondStream(1);
export const other = secondStream(2);
export const fine = millisecondStream(3);
export const t0 = 1_763_200_000;

/** One-second reports of a stream, from a second on. */
export const run = (feedId: typeof stream, from: number, count: number): StoredReport[] =>
  Array.from({ length: count }, (_, i) => report(feedId, from + i, from + i));

export const seconds = (reports: readonly StoredReport[]) =>
  reports.map(({ observationsMs }) => observationsMs / 1_000);
export const bytes = (reports: readonly (StoredReport | undefined)[]) =>
  reports.map((one) => one && Buffer.from(one.fullReport).toString('hex'));

/** Trims slice by slice; returns how many reports were removed. */
export const trimAll = async (store: Store, beforeMs: number, bytesMax = Number.POSITIVE_INFINITY): Promise<number> => {
  let removed = 0;
  for (let more = true; more; ) {
    const slice = await store.reports.trim({ beforeMs, bytesMax });
    removed += slice.removed;
    more = slice.more;
  }
  return removed;
};
