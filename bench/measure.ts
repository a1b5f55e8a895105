// Measures work in CPU time, which says more than wall time on a busy machine. Warm-up first, then at least a second.

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
