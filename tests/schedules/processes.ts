// Searches in processes of their own, of bundled code, two at a time: 3,001 schedules take 19 s in one of them, and took 25 s in the process of the tests.
import { spawn } from 'node:child_process';
import { buildPrograms, linesOf } from '../faults/programs.ts';
import type { Outcome } from './schedule.ts';
import type { Search } from './search.ts';

type WantedOfProcess = Omit<Search, 'variant'>;

/** What they ran, and what the first that failed printed. */
export type FoundByProcesses = {
  readonly ran: number;
  readonly outcome: Outcome;
  readonly failure: string | undefined;
};

export type SearchProcesses = {
  readonly search: (wanted: WantedOfProcess) => Promise<FoundByProcesses>;
  readonly remove: () => void;
};

/** A schedule leaves a megabyte of garbage. Threads that help to collect it, and small spaces, took 14 % of the CPU. */
const collectorOptions = ['--single-threaded-gc', '--min-semi-space-size=32', '--max-semi-space-size=32'];

export const buildSearchProcesses = async (): Promise<SearchProcesses> => {
  const { fileOf, remove } = await buildPrograms(['tests/schedules/search-program.ts']);
  const searchOne = async (wanted: WantedOfProcess): Promise<FoundByProcesses> => {
    const args = [...collectorOptions, fileOf('search-program'), JSON.stringify(wanted)];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
    for await (const line of linesOf(child)) return JSON.parse(line) as FoundByProcesses; // as search-program.ts prints it
    throw new Error(`The search from seed ${wanted.seed} on ended without a result. See its output.`);
  };
  return {
    search: async ({ protocol, seed, count }) => {
      // The first thousand take twice as long as those after them, until their code is compiled.
      const sizes = count < 4_000 ? [count] : [Math.ceil(count / 2), Math.floor(count / 2)];
      const found = await Promise.all(
        sizes.map((size, i) => searchOne({ protocol, seed: seed + i * (sizes[0] ?? 0), count: size })),
      );
      const sums: Record<string, number> = {};
      for (const [what, value] of found.flatMap(({ outcome }) => Object.entries(outcome)))
        sums[what] = (sums[what] ?? 0) + value;
      return {
        ran: found.reduce((sum, { ran }) => sum + ran, 0),
        outcome: sums,
        failure: found.find(({ failure }) => failure !== undefined)?.failure,
      };
    },
    remove,
  };
};
