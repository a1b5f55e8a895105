// kill -9 in a loop: a writer is killed at a random moment of every life; whatever it had acknowledged must be there, byte for byte.
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FeedId } from '@sealpost/protocol';
import { openStore } from '../../server/src/store/open.ts';
import { ended, linesOf, type Programs } from './programs.ts';

export type KillResult = {
  readonly lives: number;
  readonly acknowledged: number;
  readonly lost: number;
  readonly altered: number;
  readonly wentBack: number;
  /** From the start of a process until its store was open, for each life. */
  readonly readyMs: readonly number[];
};

type Acks = Map<string, string>;
/** What was acknowledged so far, and the newest of it. */
type Promised = { readonly acks: Acks; newestMs: number };

/** Lives after which everything acknowledged so far is compared. */
const comparedEvery = 100;

export type KillOptions = {
  /** Where the store is, and stays; otherwise in a folder of its own. */
  readonly folder?: string;
  readonly afterLife?: (life: number) => Promise<void>;
};

/** Runs lives in one folder. `mode` early is the control that must lose. */
export const runKillLoop = async (
  programs: Programs,
  lives: number,
  mode: 'honest' | 'early',
  options: KillOptions = {},
): Promise<KillResult> => {
  const folder = options.folder ?? mkdtempSync(join(tmpdir(), 'sealpost-kill-'));
  const promised: Promised = { acks: new Map(), newestMs: 0 };
  const readyMs: number[] = [];
  let wentBack = 0;
  try {
    for (let life = 1; life <= lives; life++) {
      const one = await liveAndDie(programs, folder, mode, promised);
      wentBack += one.wentBack;
      readyMs.push(one.readyMs);
      await options.afterLife?.(life);
      if (life % comparedEvery > 0 || life === lives) continue;
      const { lost, altered } = await compare(folder, promised.acks);
      if (lost + altered > 0)
        return { lives: life, acknowledged: promised.acks.size, lost, altered, wentBack, readyMs };
    }
    const { acks } = promised;
    return { lives, acknowledged: acks.size, ...(await compare(folder, acks)), wentBack, readyMs };
  } finally {
    if (options.folder === undefined) rmSync(folder, { recursive: true, force: true });
  }
};

// The clock starts with the first acknowledgement of the life: otherwise most kills would land in the start-up.
const liveAndDie = async (programs: Programs, folder: string, mode: string, promised: Promised) => {
  const { acks } = promised;
  const startedMs = performance.now();
  const child = programs.start('writer-program', [folder, mode, '1763200000']);
  let [wentBack, readyMs] = [0, 0];
  let timer: NodeJS.Timeout | undefined;
  for await (const line of linesOf(child)) {
    const [word, ...rest] = line.split(' ');
    if (word === 'open') {
      readyMs = performance.now() - startedMs;
      wentBack = rest.filter((ms) => Number(ms) < promised.newestMs).length; // each batch has all streams
    }
    if (word === 'failed') throw new Error(`The writer failed: ${line}`);
    if (word !== 'ack') continue;
    acks.set(`${rest[0]} ${rest[1]}`, rest[2] as string);
    promised.newestMs = Math.max(promised.newestMs, Number(rest[1]));
    timer ??= setTimeout(() => child.kill('SIGKILL'), Math.random() * 200);
  }
  const { signal } = await ended(child);
  clearTimeout(timer);
  if (signal !== 'SIGKILL') throw new Error('The writer ended by itself.');
  return { wentBack, readyMs };
};

const compare = async (folder: string, acks: Acks): Promise<{ lost: number; altered: number }> => {
  const store = await openStore(folder, 'read');
  try {
    const result = { lost: 0, altered: 0 };
    for (const [key, expected] of acks) {
      const [feedId, ms] = key.split(' ') as [FeedId, string];
      const [found] = await store.reports.at([feedId], Number(ms) / 1_000);
      if (found === undefined) result.lost += 1;
      else if (createHash('sha256').update(found.fullReport).digest('hex') !== expected) result.altered += 1;
    }
    return result;
  } finally {
    await store.close();
  }
};
