// Runs a target in a child process at low priority, for a time or a number of inputs. A child that hangs, crashes or takes too much memory is a
// finding, with the input that it ran last.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from '../support/source-tree.ts';
import type { Message, Order } from './child.ts';
import type { Finding } from './target.ts';
import { targets } from './targets.ts';

export type TargetRun = {
  readonly name: string;
  readonly seed: number;
  /** Ends after so many inputs, or after so many minutes. */
  readonly runs?: number;
  readonly minutes?: number;
  readonly corpus?: string | undefined;
  readonly signal?: AbortSignal;
  readonly onFinding?: (finding: Finding) => void;
  readonly hangMs?: number;
};

export type TargetResult = {
  readonly runs: number;
  /** CPU time of the processes that ran inputs, to half a second each; 0 where the system does not say. */
  readonly cpuSeconds: number;
  readonly findings: readonly Finding[];
};

/** An input that takes more CPU than this hangs; on a busy machine a process that waits for its turn takes none. */
const hangDefaultMs = 20_000;
/** An input that waits forever takes no CPU. */
const waitsPerHang = 15;
/** Resident memory of a child. Targets with a server and a store take 300 MB. */
const rssMax = 1.5 * 2 ** 30;
const heapMegabytesMax = 768;
/** Children that hang or crash before the target is given up. */
const endingsMax = 5;

type Ending = 'done' | 'hang' | 'crash' | 'memory';

type ChildRun = { readonly ending: Ending; readonly input: Buffer; readonly output: string; readonly cpuMs: number };

const rssOf = (pid: number): number => {
  try {
    return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024;
  } catch {
    return 0; // it is gone, or this is not Linux
  }
};

/** CPU time of a process, which Linux counts in hundredths of a second. */
const cpuMsOf = (pid: number): number => {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return 0; // as above
  }
};

/** The input that a child wrote down last, and its number. */
const readCurrent = (path: string): { readonly input: Buffer; readonly number: number } => {
  const bytes = readFileSync(path, { flag: 'a+' });
  if (bytes.length < 8) return { input: Buffer.alloc(0), number: -1 };
  return { input: bytes.subarray(8, 8 + bytes.readUInt32LE(0)), number: bytes.readUInt32LE(4) };
};

const startChild = (order: Order): ChildProcess => {
  const child = fork(join(root, 'tests/fuzz/child.ts'), [JSON.stringify(order)], {
    cwd: root,
    execArgv: ['--conditions=source', '--import', 'tsx', `--max-old-space-size=${heapMegabytesMax}`],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    serialization: 'json',
  });
  // Samples are part of tests, which wait for them.
  if (child.pid !== undefined && targets[order.name]?.isSample !== true)
    setPriority(child.pid, constants.priority.PRIORITY_LOW);
  return child;
};

/** Runs one child to its end. */
const runChild = (
  order: Order,
  hangMs: number,
  signal: AbortSignal | undefined,
  onMessage: (message: Message) => void,
) =>
  new Promise<ChildRun>((resolve) => {
    const child = startChild(order);
    let [output, ending, isTold]: [string, Ending, boolean] = ['', 'crash', false];
    let seen = { number: -1, atMs: 0, cpuMs: 0 };
    let cpuMs = 0;
    const end = (found: Ending): void => {
      ending = found;
      child.kill('SIGKILL');
    };
    const watch = setInterval(() => {
      const now = { number: readCurrent(order.current).number, atMs: Date.now(), cpuMs: cpuMsOf(child.pid ?? 0) };
      cpuMs = Math.max(cpuMs, now.cpuMs);
      if (now.number !== seen.number) seen = now;
      // Before the first input the target opens: a store, a server, threads.
      else if (now.number === -1) return;
      else if (now.cpuMs - seen.cpuMs > hangMs || now.atMs - seen.atMs > waitsPerHang * hangMs) end('hang');
      if (rssOf(child.pid ?? 0) > rssMax) end('memory');
    }, 500);
    const stop = (): void => void child.kill('SIGINT');
    signal?.addEventListener('abort', stop);
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output = `${output}${chunk}`.slice(-4_000);
      });
    child.on('message', (message: Message) => {
      isTold ||= message.kind === 'end';
      onMessage(message);
    });
    child.once('close', () => {
      clearInterval(watch);
      signal?.removeEventListener('abort', stop);
      const { input } = readCurrent(order.current);
      resolve({ ending: isTold ? 'done' : ending, input: Buffer.from(input), output, cpuMs });
    });
  });

const endingTexts: Readonly<Record<Exclude<Ending, 'done'>, string>> = {
  hang: 'the parser does not return',
  crash: 'the process ended',
  memory: 'the process takes too much memory',
};

/** The input that ran last, as it is. */
const findingOf = ({ ending, input, output }: ChildRun): Finding => {
  const kind = ending === 'done' ? 'crash' : ending;
  return { kind, message: `${endingTexts[kind]} ${output.trim().slice(-600)}`.trim(), input };
};

/** Runs the target's corpus, then mutations. */
export const runTarget = async (run: TargetRun): Promise<TargetResult> => {
  const { name, signal, hangMs = hangDefaultMs } = run;
  const folder = mkdtempSync(join(tmpdir(), `sealpost-fuzz-${name}-`));
  const endMs = run.minutes === undefined ? Number.MAX_SAFE_INTEGER : Date.now() + run.minutes * 60_000;
  const findings: Finding[] = [];
  let [before, now, seed, cpuMs] = [0, 0, run.seed, 0];
  const add = (finding: Finding): void => {
    if (findings.some(({ message }) => message === finding.message)) return;
    findings.push(finding);
    run.onFinding?.(finding);
  };
  const onMessage = (message: Message): void => {
    if (message.kind === 'finding') {
      add({ kind: 'broken', message: message.message, input: Buffer.from(message.input, 'hex') });
      return;
    }
    now = message.runs;
  };
  try {
    for (let endings = 0; endings < endingsMax; endings++) {
      const runs = (run.runs ?? Number.MAX_SAFE_INTEGER) - before;
      const order = { name, seed, runs, endMs, current: join(folder, 'current'), corpus: run.corpus };
      rmSync(order.current, { force: true });
      const ended = await runChild(order, hangMs, signal, onMessage);
      before += now;
      cpuMs += ended.cpuMs;
      now = 0;
      if (ended.ending === 'done' || signal?.aborted) break;
      add(findingOf(ended));
      seed += 1; // the same one would end the same way
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { runs: before, cpuSeconds: cpuMs / 1_000, findings };
};
