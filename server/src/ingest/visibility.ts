// How long reports take from the door to the readers: a door that tells it of what passes. An acknowledgement is given when
// readers can see the report, so the time until then is measured.
import type { Ingest } from './ingest.ts';

/** Reports that readers can see now, and the seconds since they came in. */
export type VisibleEvent = { readonly kind: 'visible'; readonly seconds: number; readonly count: number };

/** The same door, observed. Waiting for room counts; duplicates and refused lines do not. */
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
