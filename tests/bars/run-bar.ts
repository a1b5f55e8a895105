// One bar to its count, part by part: what each part found is written down at once, with progress and an estimate.
import { arch, availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bar } from './bar.ts';
import type { Journal, PartResult } from './journal.ts';
import { type BarResult, judge } from './results.ts';
import { type PartOutcome, type PartRun, runPart } from './run-part.ts';

export type BarRun = {
  readonly key: string;
  readonly bar: Bar;
  readonly count: number;
  readonly journal: Journal;
  readonly commit: string;
  readonly say: (text: string) => void;
  /** Told what was found so far, after each part. */
  readonly save?: (result: BarResult) => void;
  readonly random?: () => number;
  readonly run?: (part: PartRun) => Promise<PartOutcome>;
};

const minutes = (seconds: number): string =>
  seconds < 90 ? `${Math.round(seconds)} s` : `${Math.round(seconds / 60)} min`;

const unitsOf = (parts: readonly PartResult[]): number => parts.reduce((sum, { units }) => sum + units, 0);

/** Parts that the journal has are not run again. Rejects where a part fails; its files are kept, and the parts before it too. */
export const runBar = async (options: BarRun): Promise<BarResult> => {
  const { key, bar, count, journal, say, random = Math.random, run = runPart } = options;
  const parts = (): readonly PartResult[] => journal.parts().filter(({ test }) => test === bar.test);
  for (let done = unitsOf(parts()); done < count; done = unitsOf(parts())) {
    const units = Math.min(bar.count?.part ?? count, count - done);
    const seed = Math.floor(random() * 2 ** 32);
    const folder = join(tmpdir(), `sealpost-bar-${key}-${seed}`);
    const outcome = await run({ key, bar, units, first: done, seed, folder, say });
    journal.add({ seed, units, commit: options.commit, test: bar.test, ...outcome });
    options.save?.(judge(bar, parts(), whenAndWhere()));
    sayProgress(key, bar, count, parts(), say);
  }
  return judge(bar, parts(), whenAndWhere());
};

const whenAndWhere = () => ({
  date: new Date().toISOString().slice(0, 10),
  machine: `${arch()}, ${availableParallelism()} cores, Node ${process.versions.node}`,
});

const sayProgress = (
  key: string,
  bar: Bar,
  count: number,
  parts: readonly PartResult[],
  say: (text: string) => void,
): void => {
  const done = unitsOf(parts);
  const seconds = parts.reduce((sum, part) => sum + part.seconds, 0);
  const left = (seconds / done) * (count - done);
  const unit = bar.count?.unit ?? 'run';
  say(`${key}: ${done.toLocaleString('en-US')} of ${count.toLocaleString('en-US')} ${unit}, ${minutes(left)} left`);
};
