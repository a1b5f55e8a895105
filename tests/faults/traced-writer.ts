// The writer under strace: its system calls on the file of reports in their order, between the acknowledgements that it prints.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import type { Programs } from './programs.ts';

/** Can a program be traced here? Containers may forbid it. */
export const isTraceable = (strace: string): boolean => {
  try {
    execFileSync(strace, ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

export type TracedWriter = {
  readonly folder: string;
  readonly mode: 'honest' | 'early';
  readonly reports: number;
  /** Where strace writes what it sees. */
  readonly trace: string;
  /** The fdatasync of the writing thread that fails, counted from 1. */
  readonly failingSync?: number;
};

/** Starts the writer; it ends by itself. Only the calls that are traced stop it. */
export const startTracedWriter = (
  strace: string,
  programs: Programs,
  { folder, mode, reports, trace, failingSync }: TracedWriter,
): ChildProcess => {
  const inject = failingSync === undefined ? [] : ['-e', `inject=fdatasync:error=EIO:when=${failingSync}`];
  const calls = 'trace=openat,pwrite64,pwritev,fdatasync,write';
  const writer = [process.execPath, programs.fileOf('writer-program'), folder, mode, '1763200000', String(reports)];
  return spawn(strace, ['-f', '--seccomp-bpf', '-y', '-s', '8', '-e', calls, ...inject, '-o', trace, ...writer], {
    stdio: ['ignore', 'pipe', 'ignore'],
    cwd: tmpdir(),
  });
};

export type SyncOrder = {
  /** Acknowledgements printed: one write for the reports of a batch. */
  readonly batches: number;
  /** Batches that were acknowledged before as many commits had been flushed. */
  readonly early: number;
  /** Commits whose pages were not flushed before the write that makes them valid. */
  readonly unflushed: number;
  /** fdatasync calls that were made to fail. */
  readonly injected: number;
};

/** The write of LMDB that makes a commit valid is of 128 bytes. */
const commitBytes = 128;

/** Reads a trace. A commit is on the disk once its pages are flushed and the write that makes it valid has returned, on a descriptor that flushes by itself. */
export const readSyncOrder = async (trace: string): Promise<SyncOrder> => {
  const order = { batches: 0, early: 0, unflushed: 0, injected: 0 };
  const flushing = new Set<string>(); // descriptors that flush with each write
  let [isFlushed, commits, isOpen] = [false, 0, false];
  const begun = new Map<string, string>(); // by thread
  const finish = (call: string): void => {
    if (call.includes('(INJECTED)')) order.injected += 1;
    const opened = /^openat\(.*O_DSYNC.*\) = (\d+)<.*\/reports\/data\.mdb>/.exec(call)?.[1];
    if (opened !== undefined) flushing.add(opened);
    if (!call.includes('/reports/data.mdb>')) return;
    if (/^fdatasync\(.*= 0$/.test(call)) isFlushed = true;
    const [, descriptor = '', bytes] = /^pwrite(?:64|v)\((\d+)<.*= (\d+)$/.exec(call) ?? [];
    if (bytes === undefined) return;
    if (Number(bytes) !== commitBytes) isFlushed = false;
    else {
      if (!isFlushed) order.unflushed += 1;
      if (isOpen && isFlushed && flushing.has(descriptor)) commits += 1;
    }
  };
  for await (const line of createInterface({ input: createReadStream(trace) })) {
    const [, thread = '', call = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    if (/^write\(1<[^>]*>, "open /.test(call)) isOpen = true;
    if (/^write\(1<[^>]*>, "ack /.test(call)) {
      order.batches += 1;
      if (commits < order.batches) order.early += 1;
    }
    const rest = /^<\.\.\. \w+ resumed>(.*)$/.exec(call)?.[1];
    if (call.endsWith('<unfinished ...>')) begun.set(thread, call.replace(/ ?<unfinished \.\.\.>$/, ''));
    else finish(rest === undefined ? call : `${begun.get(thread) ?? ''}${rest}`);
  }
  return order;
};
