// Searches in processes of their own, of bundled code, two at a time: 3,001 schedules take 19 s in one of them, and took 25 s in the process of the tests.
import { type ChildProcess, spawn } from 'node:child_process';
import { addTallies } from '../bars/tally.ts';
import { buildPrograms, ended, linesOf } from '../faults/programs.ts';
import type { Outcome } from './schedule.ts';
import type { Search } from './search.ts';

type WantedOfProcess = Omit<Search, 'variant'>;

export type SearchProcesses = {
  readonly search: (wanted: WantedOfProcess) => Promise<FoundByProcesses>;
  /** One process alone. */
  readonly start: (wanted: WantedOfProcess) => ChildProcess;
  readonly remove: () => void;
};

/** What they ran, and what the first that failed printed. */
export type FoundByProcesses = {
  readonly ran: number;
  readonly outcome: Outcome;
  readonly failure: string | undefined;
};

/** Each takes 175 MB. */
const processesMax = 2;
/** A schedule leaves a megabyte of garbage. Threads that help to collect it, and small spaces, took 14 % of the CPU. */
const collectorOptions = ['--single-threaded-gc', '--min-semi-space-size=32', '--max-semi-space-size=32'];
/** Fewer schedules are not worth a second process: the first thousand take twice as long as those after them, until their code is compiled. */
const schedulesPerProcessMin = 2_000;

/** Parts of a range of seeds, of nearly the same size. */
export const splitSeeds = (seed: number, count: number): readonly (readonly [seed: number, count: number])[] => {
  const parts = Math.min(processesMax, Math.max(1, Math.floor(count / schedulesPerProcessMin)));
  const starts = Array.from({ length: parts + 1 }, (_, i) => Math.floor((i * count) / parts));
  return starts.slice(1).map((end, i) => [seed + (starts[i] ?? 0), end - (starts[i] ?? 0)]);
};

export const buildSearchProcesses = async (): Promise<SearchProcesses> => {
  const { fileOf, remove } = await buildPrograms(['tests/schedules/main.ts']);
  const start = ({ protocol, seed, count }: WantedOfProcess): ChildProcess =>
    spawn(
      process.execPath,
      [...collectorOptions, fileOf('main'), protocol, '--seed', `${seed}`, '--count', `${count}`],
      { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] }, // it ends with the channel
    );
  const searchOne = async (wanted: WantedOfProcess) => {
    const child = start(wanted);
    const lines: string[] = [];
    for await (const line of linesOf(child)) lines.push(line);
    const { code } = await ended(child);
    if (code !== 0 && code !== 1)
      throw new Error(`The search from seed ${wanted.seed} on ended with ${code}. See its output.`);
    const { schedules, ...outcome } = JSON.parse(lines.pop() ?? '') as Record<string, number>; // printed by main.ts
    return { ran: schedules ?? 0, outcome, failure: code === 0 ? undefined : lines.join('\n') };
  };
  return {
    search: async ({ protocol, seed, count }) => {
      const parts = splitSeeds(seed, count);
      const found = await Promise.all(parts.map(([from, size]) => searchOne({ protocol, seed: from, count: size })));
      return {
        ran: found.reduce((sum, { ran }) => sum + ran, 0),
        outcome: addTallies(found.map(({ outcome }) => outcome)),
        failure: found.find(({ failure }) => failure !== undefined)?.failure,
      };
    },
    start,
    remove,
  };
};
