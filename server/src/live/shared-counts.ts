// Counts the live connections of an account over several processes (D66): each reports how many it has and receives the others' counts. A handshake is
// decided at once, with the counts received last.

/** How many live connections an account has. */
export type AccountCount = readonly [userId: string, count: number];

export type SharedCounts = {
  /** Notes how many this process has. */
  readonly set: (userId: string, count: number) => void;
  /** How many the others have. */
  readonly elsewhere: (userId: string) => number;
  /** What has changed here since the last call. */
  readonly drain: () => readonly AccountCount[];
  readonly receive: (counts: readonly AccountCount[]) => void;
};

const setOrForget = (counts: Map<string, number>, [userId, count]: AccountCount): void => {
  if (count === 0) counts.delete(userId);
  else counts.set(userId, count);
};

export function createSharedCounts(): SharedCounts {
  const elsewhere = new Map<string, number>();
  let changed = new Map<string, number>();
  return {
    set: (userId, count) => void changed.set(userId, count),
    elsewhere: (userId) => elsewhere.get(userId) ?? 0,
    drain: () => {
      const drained = [...changed];
      if (drained.length > 0) changed = new Map();
      return drained;
    },
    receive: (counts) => {
      for (const one of counts) setOrForget(elsewhere, one);
    },
  };
}

/** Where processes meet. One that leaves takes its connections with it. */
export function createCountExchange() {
  const members = new Map<number, { readonly own: Map<string, number>; readonly news: Set<string> }>();
  const others = (member: number, userId: string): number =>
    [...members].reduce((sum, [id, { own }]) => (id === member ? sum : sum + (own.get(userId) ?? 0)), 0);
  const spread = (from: number, userIds: Iterable<string>): void => {
    for (const userId of userIds) for (const [id, { news }] of members) if (id !== from) news.add(userId);
  };
  const collect = (member: number): readonly AccountCount[] => {
    const { news } = members.get(member) ?? { news: new Set<string>() };
    const counts = [...news].map((userId): AccountCount => [userId, others(member, userId)]);
    news.clear();
    return counts;
  };
  return {
    /** Adds a process; returns the counts of all others, for it to start with. */
    join: (member: number): readonly AccountCount[] => {
      const all = new Set([...members.values()].flatMap(({ own }) => [...own.keys()]));
      members.set(member, { own: new Map(), news: all });
      return collect(member);
    },
    leave: (member: number): void => {
      const gone = members.get(member);
      members.delete(member);
      spread(member, gone?.own.keys() ?? []);
    },
    tell: (member: number, counts: readonly AccountCount[]): void => {
      const own = members.get(member)?.own;
      if (own === undefined) return;
      for (const one of counts) setOrForget(own, one);
      spread(
        member,
        counts.map(([userId]) => userId),
      );
    },
    /** What has changed among the others since the last call. */
    collect,
  };
}
