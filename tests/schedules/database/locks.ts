// Locks of a simulated PostgreSQL: rows and advisory locks, held until a transaction ends, granted in the order of asking.

/** A transaction, as far as locks are concerned. */
export type Holder = { readonly held: Set<string>; waitsFor: string | undefined };

export type Locks = {
  /** True if the holder has it now; otherwise it is granted later, and `granted` is called. */
  readonly take: (name: string, holder: Holder, granted: () => void) => boolean;
  /** Gives up waiting. */
  readonly leave: (holder: Holder) => void;
  readonly release: (holder: Holder) => void;
  /** Who has what a holder waits for. */
  readonly ownerOf: (holder: Holder) => Holder | undefined;
  /** Do holders wait for each other in a circle that this one is part of? */
  readonly isDeadlocked: (holder: Holder) => boolean;
};

type Waiter = { readonly holder: Holder; readonly granted: () => void };

export const createLocks = (): Locks => {
  const holders = new Map<string, Holder>();
  const waiting = new Map<string, Waiter[]>();
  const grant = (name: string, holder: Holder): void => {
    holders.set(name, holder);
    holder.held.add(name);
    holder.waitsFor = undefined;
  };
  const leave = (holder: Holder): void => {
    if (holder.waitsFor === undefined) return;
    const others = (waiting.get(holder.waitsFor) ?? []).filter((one) => one.holder !== holder);
    waiting.set(holder.waitsFor, others);
    holder.waitsFor = undefined;
  };
  const ownerOf = ({ waitsFor }: Holder): Holder | undefined =>
    waitsFor === undefined ? undefined : holders.get(waitsFor);
  return {
    ownerOf,
    take: (name, holder, granted) => {
      const owner = holders.get(name);
      if (owner === undefined || owner === holder) {
        grant(name, holder);
        return true;
      }
      holder.waitsFor = name;
      waiting.set(name, [...(waiting.get(name) ?? []), { holder, granted }]);
      return false;
    },
    leave,
    release: (holder) => {
      leave(holder);
      const next: Waiter[] = [];
      for (const name of holder.held) {
        holders.delete(name);
        const [first, ...others] = waiting.get(name) ?? [];
        waiting.set(name, others);
        if (first === undefined) continue;
        grant(name, first.holder);
        next.push(first);
      }
      holder.held.clear();
      // Not before all are free: whoever goes on may ask for another one of them.
      for (const { granted } of next) granted();
    },
    isDeadlocked: (holder) => {
      const seen = new Set<Holder>();
      for (let one: Holder | undefined = holder; one !== undefined && !seen.has(one); ) {
        seen.add(one);
        one = ownerOf(one);
        if (one === holder) return true;
      }
      return false;
    },
  };
};
