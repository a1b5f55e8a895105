// Measures work in CPU time, which says more than wall time on a busy machine. Warm-up first, then at least a second.
import { readFileSync } from 'node:fs';

export type Measurement = {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  readonly note?: string;
};

const cpuMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
};

/** CPU microseconds per call of `act`. */
export const cpuPerCall = (act: () => unknown, forMs = 1_000): number => {
  const until = (ms: number): number => {
    const start = cpuMs();
    let calls = 0;
    while (cpuMs() - start < ms) {
      for (let i = 0; i < 16; i++) act();
      calls += 16;
    }
    return ((cpuMs() - start) * 1_000) / calls;
  };
  until(forMs / 4);
  return until(forMs);
};

/** Calls per second of one busy core. */
export const perSecond = (microseconds: number): number => 1_000_000 / microseconds;

/** Memory of a process, by default this one, that no file stands behind. */
export const anonymousMegabytes = (pid: number | 'self' = 'self'): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
