// What grows with the number of reports: a large store beside one of a million, read and written in turns, so that both meet the same machine.
// Building the large one takes hours; it goes on where it stopped. `npm run bench -- growth [--to 100M] [--dir FOLDER] [--keep]`.
import { fork } from 'node:child_process';
import { mkdirSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Store } from '../server/src/store/store.ts';
import { cpuPerAwaited, type Measurement, median } from './measure.ts';
import { printProfile, profileFlags } from './processes/profile.ts';
import type { GrowthProgress } from './programs/growth-writer.ts';
import { benchStreams, fill, firstSecond, reportBytes } from './rekeyed-reports.ts';
import { choosePlaces, openTimed, readsOf, touch } from './store.ts';

const million = 1_000_000;
const smallReports = million;
const rounds = 5;
const secondsAppended = 200;
/** Disk for a byte of `fullReport`, with what a growing file needs for a moment. */
const diskShare = 0.45;

const secondsOf = (reports: number): number => Math.ceil(reports / benchStreams.length);

/** `100M` or `2500000`. */
export const parseReports = (text: string): number => {
  const [, digits, isMillions] = /^(\d{1,9})(M?)$/.exec(text) ?? [];
  const reports = Number(digits) * (isMillions === 'M' ? million : 1);
  if (!(reports > smallReports)) throw new Error(`--to is a number of reports above 1M, such as 100M, not ${text}`);
  return reports;
};

const checkSpace = (folder: string, reports: number): void => {
  const { bavail, bsize } = statfsSync(folder);
  const needed = reports * reportBytes * diskShare;
  if (bavail * bsize >= needed) return;
  const gigabytes = (bytes: number): string => `${(bytes / 1e9).toFixed(0)} GB`;
  throw new Error(
    `${folder} needs ${gigabytes(needed)} free and has ${gigabytes(bavail * bsize)}. Name another with --dir, or fewer reports with --to.`,
  );
};

const say = (text: string): void => void process.stderr.write(`${text}\n`);

const sayProgress = (name: string, { seconds, appendUs, anonymousMegabytes }: GrowthProgress, wanted: number): void => {
  const left = ((wanted - seconds) * benchStreams.length * appendUs) / 60_000_000;
  const reports = (seconds * benchStreams.length).toLocaleString('en-US');
  say(
    `${name}: ${reports} reports, ${appendUs.toFixed(1)} µs each, RssAnon ${anonymousMegabytes.toFixed(0)} MB, ${left.toFixed(0)} min left`,
  );
};

/** Builds a store in a process of its own, or what an earlier run left to build. The last word of its writer; undefined if nothing was left. */
const build = (name: string, folder: string, seconds: number): Promise<GrowthProgress | undefined> =>
  new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL('growth-writer.mjs', import.meta.url)); // beside this, bundled
    const title = `growth-writer ${name}`;
    const child = fork(program, [folder, String(seconds)], { execArgv: [...profileFlags(title)] });
    printProfile(title, child);
    let last: GrowthProgress | undefined;
    let toldMs = 0;
    child.on('message', (progress: GrowthProgress) => {
      last = progress;
      if (performance.now() - toldMs < 30_000) return;
      toldMs = performance.now();
      sayProgress(name, progress, seconds);
    });
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0 ? resolve(last) : reject(new Error(`the writer of ${name} ended: ${code}`)),
    );
  });

type Side = { readonly store: Store; readonly openMs: number; readonly seconds: number; appended: number };

const open = async (folder: string, seconds: number): Promise<Side> => {
  const first = await openTimed(folder); // reads the file's first pages from disk
  await first.store.close();
  const { store, openMs } = await openTimed(folder);
  const { reports } = await store.reports.stats();
  return { store, openMs, seconds, appended: Math.ceil(reports / benchStreams.length) - seconds };
};

/** µs CPU of an appended report. */
const append = async (side: Side): Promise<number> => {
  const before = process.cpuUsage();
  await fill(side.store, firstSecond + side.seconds + side.appended, secondsAppended);
  const { user, system } = process.cpuUsage(before);
  side.appended += secondsAppended;
  return (user + system) / (secondsAppended * benchStreams.length);
};

/** Medians of both sides, in turns. */
const inTurns = async (
  sides: readonly [Side, Side],
  act: (side: Side) => number | Promise<number>,
): Promise<readonly [number, number]> => {
  const found: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    found[0].push(await act(sides[0]));
    found[1].push(await act(sides[1]));
  }
  return [median(found[0]), median(found[1])];
};

/** Reads of the same number of reports on both sides, the large one's newest; then at any place of each store. */
const measureReads = async (sides: readonly [Side, Side], part: 'newest million' | 'anywhere') => {
  const fromOf = ({ seconds }: Side): number =>
    part === 'anywhere' ? firstSecond : firstSecond + seconds - secondsOf(smallReports);
  const spanOf = ({ seconds }: Side): number => (part === 'anywhere' ? seconds : secondsOf(smallReports));
  const places = new Map(sides.map((side) => [side, choosePlaces(fromOf(side), spanOf(side))]));
  for (const [{ store }, chosen] of places) await touch(store, chosen);
  const figures: (readonly [string, readonly [number, number]])[] = [];
  for (const name of ['latest', 'at', 'page of 100'] as const) {
    if (part === 'anywhere' && name === 'latest') continue;
    const read = (side: Side): Promise<number> => cpuPerAwaited(readsOf(side.store, places.get(side) ?? [])[name], 500);
    figures.push([`${name}, ${part}`, await inTurns(sides, read)]);
  }
  return figures;
};

const compare = (name: string, [small, large]: readonly [number, number], unit: string): readonly Measurement[] => [
  { name: `${name}, 1 M`, value: small, unit },
  { name, value: large, unit, note: `${(large / small).toFixed(2)}x` },
];

const measure = async (sides: readonly [Side, Side], writer: GrowthProgress | undefined) => {
  const appends = await inTurns(sides, append);
  const reads = [...(await measureReads(sides, 'newest million')), ...(await measureReads(sides, 'anywhere'))];
  const stats = await sides[1].store.reports.stats();
  return [
    { name: 'reports', value: stats.reports / million, unit: 'M' },
    ...compare('append, durable, batches of 240', appends, 'µs CPU'),
    ...reads.flatMap(([name, pair]) => compare(name, pair, 'µs CPU')),
    ...compare('open and first read', [sides[0].openMs, sides[1].openMs], 'ms'),
    { name: 'disk per byte of fullReport', value: stats.fileBytes / stats.reportBytes, unit: 'bytes' },
    ...(writer === undefined
      ? []
      : [
          {
            name: 'RssAnon of the writer',
            value: writer.anonymousMegabytes,
            unit: 'MB',
            note: `${(writer.appendUs).toFixed(1)} µs a report at the lowest priority`,
          },
        ]),
  ];
};

export const benchGrowth = async (args: readonly string[]): Promise<readonly Measurement[]> => {
  const { values } = parseArgs({
    args: [...args],
    strict: false,
    options: {
      to: { type: 'string', default: '20M' },
      dir: { type: 'string', default: join(tmpdir(), 'sealpost-growth') },
      keep: { type: 'boolean', default: false },
    },
  });
  const dir = String(values.dir);
  const reports = parseReports(String(values.to));
  const folders = [join(dir, 'small'), join(dir, 'large')] as const;
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  checkSpace(dir, reports);
  say(`The stores are in ${dir}. Stop this at any time and start it again to go on.`);
  await build('small', folders[0], secondsOf(smallReports));
  const writer = await build('large', folders[1], secondsOf(reports));
  const sides = [await open(folders[0], secondsOf(smallReports)), await open(folders[1], secondsOf(reports))] as const;
  const figures = await measure(sides, writer);
  for (const { store } of sides) await store.close();
  if (values.keep !== true) rmSync(dir, { recursive: true, force: true });
  return figures;
};
