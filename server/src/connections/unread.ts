// Bounds the bytes that wait for clients, per owner and in the process: over a bound, the connections that moved least recently are cut.

/** A connection that bytes wait for. */
export type Unread = {
  /** Whose bytes they are: an account, or an address. Undefined: counted for the process alone. */
  readonly owner: string | undefined;
  readonly waitingBytes: () => number;
  /** When its client took something last. */
  readonly movedMs: () => number;
  readonly cut: () => void;
};

export type UnreadRules = {
  readonly unreadBytesMax: number;
  /** For an account, or an address that does not authenticate. */
  readonly unreadBytesPerAccount: number;
};

export const createUnread = ({ unreadBytesMax, unreadBytesPerAccount }: UnreadRules) => {
  const waiting = new Map<Unread, number>();
  const owners = new Map<string, number>();
  let total = 0;
  const set = (one: Unread, bytes: number): void => {
    const by = bytes - (waiting.get(one) ?? 0);
    total += by;
    if (one.owner !== undefined) {
      const owned = (owners.get(one.owner) ?? 0) + by;
      if (owned === 0) owners.delete(one.owner);
      else owners.set(one.owner, owned);
    }
    if (bytes === 0) waiting.delete(one);
    else waiting.set(one, bytes);
  };
  const ofOwner = (owner: string): number => owners.get(owner) ?? 0;
  /** Cuts until the bound holds. First counts again what was sent meanwhile. */
  const cutUntil = (holds: () => boolean, concerned: (one: Unread) => boolean): void => {
    const found = [...waiting.keys()].filter(concerned);
    for (const one of found) set(one, one.waitingBytes());
    if (holds()) return;
    for (const one of found.toSorted((a, b) => a.movedMs() - b.movedMs())) {
      set(one, 0);
      one.cut();
      if (holds()) return;
    }
  };
  return {
    /** Counts what waits for a connection now; cuts connections where that is too much. */
    count: (one: Unread): void => {
      set(one, one.waitingBytes());
      const { owner } = one;
      if (owner !== undefined && ofOwner(owner) > unreadBytesPerAccount)
        cutUntil(
          () => ofOwner(owner) <= unreadBytesPerAccount,
          (other) => other.owner === owner,
        );
      if (total > unreadBytesMax)
        cutUntil(
          () => total <= unreadBytesMax,
          () => true,
        );
    },
    /** Forgets a connection; its owner may change only in between. */
    forget: (one: Unread): void => set(one, 0),
    total: (): number => total,
  };
};
