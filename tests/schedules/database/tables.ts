// The rows of a simulated PostgreSQL: what is committed, and what a transaction has written and only it can see.

/** A row; its columns by name. Never changed once it is stored. */
export type Row = Readonly<Record<string, unknown>>;

export const tableNames = ['counters', 'partitions', 'heads', 'appended', 'reports', 'relations', 'nodeNews'] as const;
export type TableName = (typeof tableNames)[number];

export type Committed = Readonly<Record<TableName, Map<string, Row>>>;

/** A change: the row that is stored now, or undefined where it was deleted. */
export type Write = { readonly table: TableName; readonly key: string; readonly row: Row | undefined };

export const createCommitted = (): Committed => ({
  counters: new Map(),
  partitions: new Map(),
  heads: new Map(),
  appended: new Map(),
  reports: new Map(),
  relations: new Map(),
  nodeNews: new Map(),
});

export const copyCommitted = (from: Committed): Committed => {
  const copy = createCommitted();
  for (const name of tableNames) for (const [key, row] of from[name]) copy[name].set(key, row);
  return copy;
};

export const applyWrites = (to: Committed, writes: readonly Write[]): void => {
  for (const { table, key, row } of writes) {
    if (row === undefined) to[table].delete(key);
    else to[table].set(key, row);
  }
};

/** What the statements of a transaction see: what is committed at each moment, and its own writes. */
export type View = {
  readonly get: (table: TableName, key: string) => Row | undefined;
  readonly rows: (table: TableName) => readonly Row[];
  readonly put: (table: TableName, key: string, row: Row | undefined) => void;
  readonly writes: () => readonly Write[];
};

export const createView = (committed: () => Committed): View => {
  const own = new Map<TableName, Map<string, Row | undefined>>();
  return {
    get: (table, key) => {
      const mine = own.get(table);
      return mine?.has(key) ? mine.get(key) : committed()[table].get(key);
    },
    rows: (table) => {
      const mine = own.get(table);
      const all = committed()[table];
      if (mine === undefined) return [...all.values()];
      const seen = new Map<string, Row | undefined>([...all, ...mine]);
      return [...seen.values()].filter((row) => row !== undefined);
    },
    put: (table, key, row) => {
      const mine = own.get(table) ?? new Map<string, Row | undefined>();
      own.set(table, mine);
      mine.set(key, row);
    },
    writes: () => [...own].flatMap(([table, rows]) => [...rows].map(([key, row]): Write => ({ table, key, row }))),
  };
};
