// Fills a store with reports, in a process of its own at the lowest priority, from where an earlier run stopped: `growth-writer FOLDER SECONDS`.
// Tells its parent how far it is.
import { setPriority } from 'node:os';
import { openStore } from '../../server/src/store/open.ts';
import { anonymousMegabytes } from '../measure.ts';
import { benchStreams, fill, firstSecond } from '../rekeyed-reports.ts';

export type GrowthProgress = {
  /** Seconds of every stream in the store. */
  readonly seconds: number;
  /** Since the start of this process. */
  readonly appendUs: number;
  readonly anonymousMegabytes: number;
};

const [folder = '', wanted = ''] = process.argv.slice(2);
const tellEvery = 4_000;
/** Large batches take half the time for each report, and leave the same blocks. */
const batchSeconds = 200;

setPriority(19);
const store = await openStore(folder, 'write');
const last = benchStreams.at(-1);
const newest = last === undefined ? undefined : store.reports.latest(last);
const begin = newest === undefined ? 0 : newest.observationsMs / 1_000 - firstSecond + 1;
const startedMs = performance.now();
const tell = (seconds: number): void => {
  const appendUs = ((performance.now() - startedMs) * 1_000) / (Math.max(1, seconds - begin) * benchStreams.length);
  process.send?.({ seconds, appendUs, anonymousMegabytes: anonymousMegabytes() } satisfies GrowthProgress);
};
for (let seconds = begin; seconds < Number(wanted); ) {
  const step = Math.min(tellEvery, Number(wanted) - seconds);
  await fill(store, firstSecond + seconds, step, batchSeconds);
  seconds += step;
  tell(seconds);
}
await store.close();
process.disconnect?.();
