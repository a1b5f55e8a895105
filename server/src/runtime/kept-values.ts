// Values by key, all of them up to a size: what many clients ask for is worked out once. At the bound everything is forgotten, or what was not asked for
// since half of it was, which costs less than tracking use.

export type KeptValues<T, K = string> = {
  /** Undefined where nothing is kept, or it is too old. */
  readonly get: (key: K) => T | undefined;
  /** `size` is in the unit of `sizeMax`. */
  readonly put: (key: K, value: T, size: number) => void;
};

/** Each for a while. */
export function createKeptValues<T>(keptMs: number, sizeMax: number, monotonicMs: () => number): KeptValues<T> {
  const kept = createBounded<string, { readonly value: T; readonly atMs: number }>(() => new Map(), sizeMax);
  return {
    get: (key) => {
      const found = kept.get(key);
      return found !== undefined && monotonicMs() - found.atMs < keptMs ? found.value : undefined;
    },
    put: (key, value, size) => kept.put(key, { value, atMs: monotonicMs() }, size),
  };
}

/** Each for as long as the object lives that is its key. */
export const createValuesByObject = <K extends object, T>(sizeMax: number): KeptValues<T, K> =>
  createBounded<K, T>(() => new WeakMap(), sizeMax);

type Table<K, V> = { readonly get: (key: K) => V | undefined; readonly set: (key: K, value: V) => unknown };

const createBounded = <K, T>(
  openTable: () => Table<K, { readonly value: T; readonly size: number }>,
  sizeMax: number,
): KeptValues<T, K> => {
  let kept = openTable();
  let total = 0;
  return {
    get: (key) => kept.get(key)?.value,
    put: (key, value, size) => {
      total += size - (kept.get(key)?.size ?? 0);
      if (total > sizeMax) [kept, total] = [openTable(), size];
      kept.set(key, { value, size });
    },
  };
};

/** Those used last: of at most twice `count` values, the older half is forgotten where it was not asked for since. None may be undefined. */
export function createLastUsed<K, V>(count: number) {
  let young = new Map<K, V>();
  let old = new Map<K, V>();
  const keep = (key: K, value: V): void => {
    if (young.size >= count) {
      old = young;
      young = new Map(); // not cleared: D232
    }
    young.set(key, value);
  };
  return {
    get: (key: K): V | undefined => {
      const known = young.get(key);
      if (known !== undefined) return known;
      const older = old.get(key);
      if (older !== undefined) keep(key, older);
      return older;
    },
    keep,
  };
}

/** Characters of all remembered texts together: a megabyte, for some thousand targets. */
const charactersMax = 1_000_000;
/** By then most texts are of a second that nobody asks for again: without this, memory would grow for hours before it has what all routes may keep. */
const keptMs = 60_000;

/** Memoizes `work`, which must depend on the text alone and return immutable values. Errors are not kept. */
export function memoise<T>(
  work: (text: string) => T,
  monotonicMs: () => number = () => performance.now(),
): (text: string) => T {
  let known = new Map<string, T>();
  let characters = 0;
  let begunMs = Number.NEGATIVE_INFINITY;
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    const result = work(text);
    const nowMs = monotonicMs();
    characters += text.length;
    if (characters > charactersMax || nowMs - begunMs > keptMs) {
      known = new Map(); // not cleared: D232
      characters = text.length;
      begunMs = nowMs;
    }
    known.set(text, result);
    return result;
  };
}
