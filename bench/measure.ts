// Measures work in CPU time, which says more than wall time on a busy machine. Warm-up first, then at least a second.
import { readdirSync, readFileSync } from 'node:fs';

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

/** As `cpuPerCall`, for what takes several turns of the event loop: a call begins once the last one has ended, so that none is left over. */
export const cpuPerAwaited = async (act: () => unknown, forMs = 1_000): Promise<number> => {
  const until = async (ms: number): Promise<number> => {
    const start = cpuMs();
    let calls = 0;
    while (cpuMs() - start < ms) {
      for (let i = 0; i < 16; i++) {
        const result = act();
        if (result instanceof Promise) await result; // waiting for what is there costs as much as `latest`
      }
      calls += 16;
    }
    return ((cpuMs() - start) * 1_000) / calls;
  };
  await until(forMs / 4);
  return until(forMs);
};

/** Memory of a process, by default this one, that no file stands behind. */
export const anonymousMegabytes = (pid: number | 'self' = 'self'): number =>
  Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1_024;

export const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** µs of a tick, the unit of CPU times in /proc. */
const tickUs = 10_000;

/** CPU in µs that a process and its children have used so far. */
export const cpuOfTree = (pid: number): number => {
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        // The fields after the name in parentheses, which may contain anything: state, parent, …, user and system time.
        const fields = readFileSync(`/proc/${name}/stat`, 'utf8')
          .replace(/^.*\) /s, '')
          .split(' ')
          .map(Number);
        return [{ pid: Number(name), parent: fields[1], ticks: (fields[11] ?? 0) + (fields[12] ?? 0) }];
      } catch {
        return []; // it has ended
      }
    });
  const ticks = processes.reduce((sum, one) => (one.pid === pid || one.parent === pid ? sum + one.ticks : sum), 0);
  return ticks * tickUs;
};
