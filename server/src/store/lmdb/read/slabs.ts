// Memory for rendered reports: a ring of slabs that are filled one after the other and used again. V8 collects all of its garbage for every 64 MB of new
// buffers, which took a quarter of the CPU of a page that is asked for once. A slab that answers are still sent from is left to them and replaced.

/** Bytes that are used again together. */
export type Slab = {
  readonly bytes: Buffer;
  /** Answers that are sent from it. */
  users: number;
  /** What was rendered into it since it was last used again. */
  readonly regions: Region[];
  isLeft: boolean;
};

/** Where something is rendered; `slab` is undefined once its bytes are used for something else. */
export type Region = { slab: Slab | undefined };

export type Slabs = {
  /** So many bytes: where they begin in a slab. Unless they are kept, the next call gives them again. */
  readonly take: (bytes: number) => { readonly slab: Slab; readonly start: number };
  /** Keeps what was taken last, up to an end, as a region until the ring comes around. False: the slab is only for the present caller. */
  readonly keep: (slab: Slab, end: number, region: Region) => boolean;
  readonly lease: () => Lease;
  /** Whether what is kept in it counts as kept: it is neither left nor for one caller only. */
  readonly isInRing: (slab: Slab) => boolean;
};

/** Keeps slabs from being used again until it is released. */
export type Lease = { readonly add: (slab: Slab) => void; readonly release: () => void };

/** Slabs that are left to slow answers at most. Beyond that each rendering has exactly the memory that it needs, so that slow clients do not pin more. */
const leftMax = 16;

const openSlab = (bytes: number): Slab => ({
  bytes: Buffer.allocUnsafeSlow(bytes),
  users: 0,
  regions: [],
  isLeft: false,
});

/** Makes a ring of `slabsMax` slabs, which are allocated when they are first needed. `onLeft`: one is only for slow answers from now on. */
export const createSlabs = (slabBytes: number, slabsMax: number, onLeft: () => void = () => {}): Slabs => {
  const ring: Slab[] = [];
  let left = 0;
  let next = 0;
  let current: Slab | undefined;
  let used = 0;
  const clear = (slab: Slab | undefined): void => {
    for (const region of slab?.regions.splice(0) ?? []) region.slab = undefined;
  };
  /** The slab whose turn it is, or a new one in its place where it is in use. */
  const advance = (): Slab => {
    const before = ring[next];
    clear(before);
    if (before !== undefined && before.users > 0) {
      before.isLeft = true;
      left += 1;
      onLeft();
    }
    const slab = before === undefined || before.isLeft ? openSlab(slabBytes) : before;
    ring[next] = slab;
    next = (next + 1) % slabsMax;
    return slab;
  };
  const release = (slab: Slab): void => {
    slab.users -= 1;
    if (slab.isLeft && slab.users === 0) left -= 1;
  };
  return {
    take: (bytes) => {
      if (current !== undefined && used + bytes <= slabBytes) return { slab: current, start: used };
      if (bytes > slabBytes || left >= leftMax) return { slab: openSlab(bytes), start: 0 };
      current = advance();
      used = 0;
      return { slab: current, start: 0 };
    },
    keep: (slab, end, region) => {
      if (slab !== current) return false;
      used = end;
      slab.regions.push(region);
      return true;
    },
    isInRing: (slab) => ring.includes(slab),
    lease: () => {
      const held: Slab[] = [];
      return {
        add: (slab) => {
          if (held.includes(slab)) return;
          held.push(slab);
          slab.users += 1;
        },
        release: () => {
          for (const slab of held.splice(0)) release(slab);
        },
      };
    },
  };
};
