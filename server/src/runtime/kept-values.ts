// Values by key, each for a while and all of them up to a size: what many clients ask for is worked out once. At the bound it forgets everything,
// which costs less than tracking use.

export type KeptValues<T> = {
  /** Undefined where nothing is kept, or it is too old. */
  readonly get: (key: string) => T | undefined;
  /** `size` is in the unit of `sizeMax`. */
  readonly put: (key: string, value: T, size: number) => void;
};

export const createKeptValues = <T>(keptMs: number, sizeMax: number, monotonicMs: () => number): KeptValues<T> => {
  const kept = new Map<string, { readonly value: T; readonly size: number; readonly atMs: number }>();
  let total = 0;
  return {
    get: (key) => {
      const found = kept.get(key);
      return found !== undefined && monotonicMs() - found.atMs < keptMs ? found.value : undefined;
    },
    put: (key, value, size) => {
      total += size - (kept.get(key)?.size ?? 0);
      if (total > sizeMax) {
        kept.clear();
        total = size;
      }
      kept.set(key, { value, size, atMs: monotonicMs() });
    },
  };
};
