// Memory and descriptors of processes over time, and whether they grow: a leak shows as a slope, not as a high value.
import { readdirSync, readFileSync } from 'node:fs';

export type Sample = {
  readonly atMs: number;
  readonly memoryKb: number;
  /** The same by process. */
  readonly memoryKbOf: ReadonlyMap<number, number>;
  readonly descriptors: number;
  /** How many processes these are the sums of. */
  readonly processes: number;
};

/** One life of a program, with the processes that it started: a restart begins another one. */
export type Life = { readonly name: string; readonly pid: number; readonly samples: readonly Sample[] };

export type Growth = {
  readonly name: string;
  /** Of the processes that were there all the time: a database has others for a while, and whether there are ever more of them is judged apart. */
  readonly memoryMb: number;
  /** Of its memory, in percent. */
  readonly percentPerHour: number;
  readonly megabytesPerHour: number;
  /** Between the first and the last quarter. */
  readonly descriptors: number;
  readonly processes: number;
  /** That the slope is of: without the warm-up. */
  readonly minutes: number;
  /** The lowest memory of each part of it, in megabytes: whether it rises to the end, or did so once. */
  readonly floors: readonly number[];
};

/** Parts of a life whose lowest values are compared: between two collections of garbage memory rises without a leak. */
const parts = 12;
const hourMs = 3_600_000;

export const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The lowest memory of each part of a life. */
const floorsOf = (samples: readonly Sample[]): readonly Sample[] => {
  const size = Math.ceil(samples.length / parts);
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, i) =>
    samples.slice(i * size, (i + 1) * size).reduce((low, one) => (one.memoryKb < low.memoryKb ? one : low)),
  );
};

/** The median of the slopes between all pairs: a single step or outlier does not move it. Per millisecond. */
export const medianSlope = (points: readonly { readonly atMs: number; readonly value: number }[]): number =>
  medianOf(
    points.flatMap((a, i) =>
      points
        .slice(i + 1)
        .filter(({ atMs }) => atMs > a.atMs)
        .map((b) => (b.value - a.value) / (b.atMs - a.atMs)),
    ),
  );

/** Samples with the memory of those processes only that are in all of them. */
const withoutPassing = (samples: readonly Sample[]): readonly Sample[] => {
  const staying = [...(samples[0]?.memoryKbOf.keys() ?? [])].filter((pid) =>
    samples.every(({ memoryKbOf }) => memoryKbOf.has(pid)),
  );
  return samples.map((one) => ({
    ...one,
    memoryKb: staying.reduce((sum, pid) => sum + (one.memoryKbOf.get(pid) ?? 0), 0),
  }));
};

/** How a life grew after its warm-up; undefined if no more than `leastMs` of it is left. */
export const growthOf = ({ name, samples }: Life, warmUpMs: number, leastMs = 0): Growth | undefined => {
  const begun = samples[0]?.atMs ?? 0;
  const settled = withoutPassing(samples.filter(({ atMs }) => atMs - begun >= warmUpMs));
  const settledMs = (settled.at(-1)?.atMs ?? 0) - (settled[0]?.atMs ?? 0);
  if (settled.length < 2 * parts || settledMs < leastMs) return undefined;
  const memoryKb = medianOf(settled.map((one) => one.memoryKb));
  const floors = floorsOf(settled);
  const slope = medianSlope(floors.map((one) => ({ atMs: one.atMs, value: one.memoryKb }))) * hourMs;
  const quarter = Math.floor(settled.length / 4);
  const riseOf = (what: 'descriptors' | 'processes'): number =>
    medianOf(settled.slice(-quarter).map((one) => one[what])) -
    medianOf(settled.slice(0, quarter).map((one) => one[what]));
  return {
    name,
    memoryMb: memoryKb / 1_024,
    percentPerHour: (slope / memoryKb) * 100,
    megabytesPerHour: slope / 1_024,
    descriptors: riseOf('descriptors'),
    processes: riseOf('processes'),
    minutes: settledMs / 60_000,
    floors: floors.map((one) => one.memoryKb / 1_024),
  };
};

/** By how many percent what is in use after collections of garbage, `everyMs` apart, grew in an hour after the warm-up; undefined of a short life. */
export const heapGrowthOf = (megabytes: readonly number[], everyMs: number, warmUpMs: number): number | undefined => {
  const settled = megabytes.map((value, i) => ({ atMs: i * everyMs, value })).filter(({ atMs }) => atMs >= warmUpMs);
  if (settled.length < parts) return undefined;
  return ((medianSlope(settled) * hourMs) / medianOf(settled.map(({ value }) => value))) * 100;
};

/** Memory that no file stands behind, and open descriptors; undefined if the process has ended. Linux only. */
export const measure = (pid: number, atMs: number): Sample | undefined => {
  try {
    const [, memory] = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    const descriptors = readdirSync(`/proc/${pid}/fd`).length;
    const memoryKb = Number(memory ?? 0);
    return { atMs, memoryKb, memoryKbOf: new Map([[pid, memoryKb]]), descriptors, processes: 1 };
  } catch {
    return undefined;
  }
};

/** The same of a process and those that it started, added up. */
const measureAll = (pid: number, atMs: number): Sample | undefined => {
  const own = measure(pid, atMs);
  if (own === undefined) return undefined;
  const others = childrenOf(pid).flatMap((child) => measure(child, atMs) ?? []);
  return others.reduce(
    (sum, one) => ({
      atMs,
      memoryKb: sum.memoryKb + one.memoryKb,
      memoryKbOf: new Map([...sum.memoryKbOf, ...one.memoryKbOf]),
      descriptors: sum.descriptors + one.descriptors,
      processes: sum.processes + 1,
    }),
    own,
  );
};

const childrenOf = (pid: number): readonly number[] => {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
    return text === '' ? [] : text.split(' ').map(Number);
  } catch {
    return []; // it has ended
  }
};

/** Measures whatever runs under a name, again and again. */
export const startMeasures = (everyMs: number, running: () => ReadonlyMap<string, number>) => {
  const lives = new Map<string, { name: string; pid: number; samples: Sample[] }>();
  const look = (): void => {
    for (const [name, pid] of running()) {
      const sample = measureAll(pid, performance.now());
      if (sample === undefined) continue;
      const key = `${name} ${pid}`;
      const life = lives.get(key) ?? { name, pid, samples: [] };
      lives.set(key, life);
      life.samples.push(sample);
    }
  };
  const timer = setInterval(look, everyMs);
  return {
    stop: (): readonly Life[] => {
      clearInterval(timer);
      return [...lives.values()];
    },
  };
};
