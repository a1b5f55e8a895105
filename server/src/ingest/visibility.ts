// Measures how long reports take from arrival until readers can see them. Ingest acknowledges a report once readers can see it, so this is the
// time until the acknowledgement.
import type { Ingest } from './ingest.ts';

/** Reports that readers can see now, and the seconds since they came in. */
export type VisibleEvent = { readonly kind: 'visible'; readonly seconds: number; readonly count: number };

/** The same ingest, observed. The time that a batch waits counts; duplicates and rejected lines do not. */
export const watchVisibility = (
  ingest: Ingest,
  monotonicMs: () => number,
  observe: (event: VisibleEvent) => void,
): Ingest => ({
  ...ingest,
  submit: async (lines, firstLine, sender) => {
    const startedMs = monotonicMs();
    const results = await ingest.submit(lines, firstLine, sender);
    const count = results.filter(({ result }) => result === 'stored').length;
    if (count > 0) observe({ kind: 'visible', seconds: (monotonicMs() - startedMs) / 1_000, count });
    return results;
  },
});
