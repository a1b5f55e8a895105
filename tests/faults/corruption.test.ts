import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, tally } from '../support/full-count.ts';
import { createHealthyStore, type HealthyStore, runTruncation } from './corruption.ts';
import { buildPrograms, type Programs } from './programs.ts';

let programs: Programs;
let healthy: HealthyStore;
beforeAll(async () => {
  programs = await buildPrograms();
  healthy = await createHealthyStore();
});
afterAll(() => {
  programs.remove();
  healthy.remove();
});

/** Of every kind, then more of them, evenly spread. */
const shares = [0, 0.001, 0.02, 0.3, 0.6, 0.9, 0.99];
const cuts = Math.max(shares.length, countOf(5, 100) / 10);
const spread = Array.from({ length: cuts - shares.length }, (_, i) => (i + 0.5) / (cuts - shares.length));

test.each([...shares, ...spread])('corruption: a file cut to %f of itself is refused by name', async (keep) => {
  const { answer, withoutChecks } = await runTruncation(programs, healthy, keep);
  tally({ 'truncated files': 1, 'truncated files that were opened': answer === 'store_corrupt' ? 0 : 1 });
  expect(answer).toBe('store_corrupt');
  // Control: without the check the process dies, or LMDB cannot open it. The last pages may be free, and go unread.
  if (keep <= 0.6) expect(withoutChecks).not.toBe('exit 0');
});
