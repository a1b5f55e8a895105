// `--profile`: CPU profiles of the processes that a workload measures, and their largest frames by self time. Each thread has a profile of its own,
// in data-profile/NAME; browsers open such files.
import type { ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What V8 writes, as far as it is read here; times in microseconds. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly startTime: number;
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
};

export type Frame = { readonly name: string; readonly place: string; readonly microseconds: number };

/** The place of a line, counted from 0, of a file that ran. */
export type PlaceOf = (url: string, line: number) => string;

const framesMax = 25;
/** Threads that hardly ran are left out. */
const microsecondsMin = 100_000;

/** Frames by self time, the largest first, from a time on; a thread that waits uses none. */
export const framesOf = (profile: CpuProfile, placeOf: PlaceOf, since = 0): readonly Frame[] => {
  const nodes = new Map(profile.nodes.map(({ id, callFrame }) => [id, callFrame]));
  const frames = new Map<string, { name: string; place: string; microseconds: number }>();
  let at = profile.startTime;
  for (const [i, id] of profile.samples.entries()) {
    const delta = profile.timeDeltas[i] ?? 0;
    at += delta;
    const { functionName: name, url, lineNumber } = nodes.get(id) ?? { functionName: '', url: '', lineNumber: 0 };
    if (at < since || name === '(idle)') continue;
    const key = `${name} ${url} ${lineNumber}`;
    const frame = frames.get(key) ?? { name, place: url === '' ? '' : placeOf(url, lineNumber), microseconds: 0 };
    frame.microseconds += delta;
    frames.set(key, frame);
  }
  return [...frames.values()].sort((a, b) => b.microseconds - a.microseconds);
};

/** Finds lines of sources behind lines of bundles, which have their maps beside them. */
const createPlaces = (): PlaceOf => {
  const maps = new Map<string, SourceMap | undefined>();
  const mapOf = (file: string): SourceMap | undefined => {
    try {
      return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
    } catch {
      return undefined; // not a bundle of ours
    }
  };
  return (url, line) => {
    if (!url.startsWith('file:')) return `${url}:${line + 1}`;
    const file = fileURLToPath(url);
    if (!maps.has(file)) maps.set(file, mapOf(file));
    // A function begins somewhere in its line, and a bundle has one statement in a line.
    const found = maps.get(file)?.findEntry(line, 1_000);
    if (found === undefined || !('originalSource' in found))
      return `${relative(process.cwd(), file).replace(/^.*node_modules\//, '')}:${line + 1}`;
    return `${relative(process.cwd(), join(file, '..', found.originalSource))}:${found.originalLine + 1}`;
  };
};

const say = (line: string): void => void process.stdout.write(`${line}\n`);

const print = (title: string, folder: string, since: number): void => {
  const placeOf = createPlaces();
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))) {
    const profile = JSON.parse(readFileSync(join(folder, file), 'utf8')) as CpuProfile; // V8 wrote it
    const frames = framesOf(profile, placeOf, since);
    const total = frames.reduce((sum, { microseconds }) => sum + microseconds, 0);
    if (total < microsecondsMin) continue;
    say(`\n${title}: ${(total / 1_000_000).toFixed(1)} s on the CPU, ${relative(process.cwd(), join(folder, file))}`);
    for (const { name, place, microseconds } of frames.slice(0, framesMax))
      say(`  ${((microseconds * 100) / total).toFixed(1).padStart(5)} %  ${name || '(anonymous)'}  ${place}`);
  }
};

export const isProfiling = (): boolean => process.argv.includes('--profile');

const folderOf = (name: string): string => join(process.cwd(), 'data-profile', name.replaceAll(/[^\w-]+/g, '-'));

/** Options of Node for a process that is profiled under a name; none unless `--profile` was given. */
export const profileFlags = (name: string): readonly string[] => {
  if (!isProfiling()) return [];
  rmSync(folderOf(name), { recursive: true, force: true });
  return ['--cpu-prof', '--cpu-prof-dir', folderOf(name)];
};

/** Prints the profile of a process that was started with the flags of this name, once it ended: from its first message on, if it sends one. */
export const printProfile = (name: string, child: ChildProcess): void => {
  if (!isProfiling()) return;
  let since = 0;
  child.once('message', () => {
    since = Number(process.hrtime.bigint() / 1_000n); // the clock of V8's samples
  });
  child.once('exit', () => print(name, folderOf(name), since));
};
