import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openEnvironment, openTable } from '../../server/src/store/lmdb/environment.ts';
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

test('corruption: the control, which reads without checksums, serves wrong bytes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sealpost-control-'));
  try {
    cpSync(join(healthy.folder, 'reports'), folder, { recursive: true });
    const environment = openEnvironment(folder, true);
    let wrong = 0;
    for (const { value } of openTable(environment, 'runs', true).getRange()) {
      // The last report of a run lies at its end; nothing but a checksum tells that it was altered.
      const flipped = Buffer.from(value);
      flipped[value.length - 5] = (flipped[value.length - 5] as number) ^ 1;
      if (!flipped.subarray(-100).equals(value.subarray(-100))) wrong += 1;
    }
    await environment.root.close();
    expect(wrong).toBeGreaterThan(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
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
