// Backups of a store while it is written to, each restored elsewhere: whatever was acknowledged before the backup began is in it.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../cli/src/sample-session.fixture.ts';
import { openStore } from '../../server/src/store/open.ts';
import { countOf, tally, tallyControl } from '../support/full-count.ts';
import { buildPrograms, ended, linesOf, type Programs } from './programs.ts';

let programs: Programs;
let root: string;
beforeAll(async () => {
  programs = await buildPrograms();
  root = mkdtempSync(join(tmpdir(), 'sealpost-backups-'));
});
afterAll(() => {
  programs.remove();
  rmSync(root, { recursive: true, force: true });
});

const backups = countOf(2, 100);

/** What was acknowledged and is not in a store byte for byte. */
const lostOf = async (folder: string, acks: ReadonlyMap<string, string>): Promise<number> => {
  const store = await openStore(folder, 'read');
  let lost = 0;
  for (const [key, hash] of acks) {
    const [feedId, ms] = key.split(' ') as [FeedId, string]; // as it is made below
    const [found] = await store.reports.at([feedId], Number(ms) / 1_000);
    if (found === undefined || createHash('sha256').update(found.fullReport).digest('hex') !== hash) lost += 1;
  }
  await store.close();
  return lost;
};

const run = async (...args: string[]): Promise<void> => {
  const { code, stderr } = await runCommand(args);
  if (code !== 0) throw new Error(`${args.join(' ')}: ${stderr}`);
};

test(`backup: ${backups} of a store in use, restored elsewhere, have all that was acknowledged before they began`, {
  timeout: 7_200_000,
}, async () => {
  const folder = join(root, 'store');
  const child = programs.start('writer-program', [folder, 'honest', '1763200000']);
  const acks = new Map<string, string>();
  let isAcknowledged = (): void => {};
  const reading = (async () => {
    for await (const line of linesOf(child)) {
      const [word, feedId, ms, hash = ''] = line.split(' ');
      if (word === 'ack') acks.set(`${feedId} ${ms}`, hash);
      if (word === 'ack') isAcknowledged();
    }
  })();
  const nextAcknowledgement = (): Promise<void> =>
    new Promise((resolve) => {
      isAcknowledged = resolve;
    });
  try {
    let ofLast = new Map<string, string>();
    for (let i = 0; i < backups; i++) {
      await nextAcknowledgement();
      const before = new Map(acks);
      const [backup, restored] = [join(root, `backup-${i}`), join(root, `restored-${i}`)];
      await run('store', 'backup', backup, '--store', folder);
      await nextAcknowledgement(); // it goes on
      await run('store', 'restore', backup, '--store', restored);
      const lost = await lostOf(restored, before);
      tally({ acknowledged: before.size - ofLast.size, lost });
      expect(lost).toBe(0);
      if (i === backups - 1) {
        const lostByClaim = await lostOf(restored, acks);
        tallyControl({ 'acknowledged later and not in it': lostByClaim });
        expect(lostByClaim).toBeGreaterThan(0); // the control: the comparison finds what a backup has not
      }
      for (const done of [backup, restored]) rmSync(done, { recursive: true });
      ofLast = before;
    }
  } finally {
    child.kill('SIGKILL');
    await ended(child);
    await reading;
  }
});
