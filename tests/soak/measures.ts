// Memory and descriptors of processes over time, and whether they grow: a leak shows as a slope, not as a high value.
import { readdirSync, readFileSync } from 'node:fs';

export type Sample = { readonly atMs: number; readonly memoryKb: number; readonly descriptors: number };

/** One life of a process: a restart begins another one. */
export type Life = { readonly name: string; readonly pid: number; readonly samples: readonly Sample[] };

export type Growth = {
  readonly name: string;
  readonly memoryMb: number;
  /** Of its memory, in percent. */
  readonly percentPerHour: number;
  readonly megabytesPerHour: number;
  /** Between the first and the last quarter. */
  readonly descriptors: number;
  readonly minutes: number;
};

/** Parts of a life whose lowest values are compared: between two collections of garbage memory rises without a leak. */
const parts = 12;
const hourMs = 3_600_000;

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** The lowest memory of each part of a life. */
const floorsOf = (samples: readonly Sample[]): readonly Sample[] => {
  const size = Math.ceil(samples.length / parts);
  return Array.from({ length: Math.ceil(samples.length / size) }, (_, i) =>
    samples.slice(i * size, (i + 1) * size).reduce((low, one) => (one.memoryKb < low.memoryKb ? one : low)),
  );
};

/** The median of the slopes between all pairs: a single step or outlier does not move it. Kilobytes per hour. */
const slopeOf = (points: readonly Sample[]): number =>
  medianOf(
    points.flatMap((a, i) =>
      points
        .slice(i + 1)
        .filter(({ atMs }) => atMs > a.atMs)
        .map((b) => ((b.memoryKb - a.memoryKb) / (b.atMs - a.atMs)) * hourMs),
    ),
  );

/** How a life grew after its warm-up; undefined if too little of it is left to tell. */
export const growthOf = ({ name, samples }: Life, warmUpMs: number): Growth | undefined => {
  const begun = samples[0]?.atMs ?? 0;
  const settled = samples.filter(({ atMs }) => atMs - begun >= warmUpMs);
  if (settled.length < 2 * parts) return undefined;
  const memoryKb = medianOf(settled.map((one) => one.memoryKb));
  const slope = slopeOf(floorsOf(settled));
  const quarter = Math.floor(settled.length / 4);
  const descriptorsOf = (some: readonly Sample[]): number => medianOf(some.map((one) => one.descriptors));
  return {
    name,
    memoryMb: memoryKb / 1_024,
    percentPerHour: (slope / memoryKb) * 100,
    megabytesPerHour: slope / 1_024,
    descriptors: descriptorsOf(settled.slice(-quarter)) - descriptorsOf(settled.slice(0, quarter)),
    minutes: ((settled.at(-1)?.atMs ?? 0) - (settled[0]?.atMs ?? 0)) / 60_000,
  };
};

/** Memory that no file stands behind, and open descriptors; undefined if the process has ended. Linux only. */
export const measure = (pid: number, atMs: number): Sample | undefined => {
  try {
    const [, memory] = /RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
    return { atMs, memoryKb: Number(memory ?? 0), descriptors: readdirSync(`/proc/${pid}/fd`).length };
  } catch {
    return undefined;
  }
};

/** Measures whatever runs under a name, again and again. */
export const startMeasures = (everyMs: number, running: () => ReadonlyMap<string, number>) => {
  const lives = new Map<number, { name: string; pid: number; samples: Sample[] }>();
  const look = (): void => {
    for (const [name, pid] of running()) {
      const sample = measure(pid, performance.now());
      if (sample === undefined) continue;
      const life = lives.get(pid) ?? { name, pid, samples: [] };
      lives.set(pid, life);
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
