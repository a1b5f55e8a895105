// The process that runs one target's inputs. It writes each input down before it runs it, so that its parent knows which one hung or crashed it.
import { openSync, writeSync } from 'node:fs';
import { readCorpus } from './corpus.ts';
import { createFuzzer } from './fuzzer.ts';
import { targets } from './targets.ts';

/** What the parent gives as JSON. */
export type Order = {
  readonly name: string;
  readonly seed: number;
  readonly runs: number;
  readonly endMs: number;
  /** Where the input that runs now is written down. */
  readonly current: string;
  readonly corpus?: string | undefined;
};

export type Message =
  | { readonly kind: 'progress' | 'end'; readonly runs: number }
  | { readonly kind: 'finding'; readonly message: string; readonly input: string };

/** Different findings of one process; with more, the target is broken as a whole. */
const findingsMax = 20;

const order = JSON.parse(process.argv[2] ?? '{}') as Order;
const tell = (message: Message): Promise<void> =>
  new Promise((resolve) => void (process.send?.(message, () => resolve()) ?? resolve()));

/** Length and number of the input, then its bytes, in one write. */
const createNotes = (path: string) => {
  const file = openSync(path, 'w');
  const head = 8;
  let room = Buffer.alloc(65_536 + head);
  return (input: Buffer, runs: number): void => {
    if (input.length + head > room.length) room = Buffer.alloc(2 * input.length + head);
    room.writeUInt32LE(input.length, 0);
    room.writeUInt32LE(runs, 4);
    input.copy(room, head);
    writeSync(file, room, 0, head + input.length, 0);
  };
};

let isStopped = false;
process.on('SIGINT', () => {
  isStopped = true;
});
process.on('disconnect', () => process.exit());

const row = targets[order.name];
if (row === undefined) throw new Error(`${order.name} is not a target.`);
const target = await row.open();
const corpus = readCorpus(order.name, order.corpus).map(({ input }) => input);
const fuzzer = createFuzzer(target, { seed: order.seed, corpus, onRun: createNotes(order.current) });
const findings = await fuzzer.runPool();
for (const { message, input } of findings) await tell({ kind: 'finding', message, input: input.toString('hex') });
let toldMs = 0;
let count = findings.length;
while (!isStopped && fuzzer.runs() < order.runs && count < findingsMax) {
  const finding = await fuzzer.next();
  if (finding !== undefined) {
    count += 1;
    await tell({ kind: 'finding', message: finding.message, input: finding.input.toString('hex') });
  }
  if (fuzzer.runs() % 64 !== 0) continue;
  const nowMs = Date.now();
  if (nowMs >= order.endMs) break;
  if (nowMs - toldMs < 500) continue;
  toldMs = nowMs;
  // Also lets timers, sockets and the parent's messages in.
  await tell({ kind: 'progress', runs: fuzzer.runs() });
}
await tell({ kind: 'end', runs: fuzzer.runs() });
await target.close?.();
process.exit();
