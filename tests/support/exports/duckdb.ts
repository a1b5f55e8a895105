// DuckDB in memory, for reading exported files back with another implementation.
import { DuckDBInstance } from '@duckdb/node-api';

/** A value as DuckDB's API gives it, its classes reduced to what they hold. */
export type DuckValue = null | boolean | number | bigint | string;

export type DuckDb = {
  /** Rows by column name: decimals as integers times 10^scale, timestamps as microseconds. */
  readonly rows: (sql: string) => Promise<readonly Readonly<Record<string, DuckValue>>[]>;
  /** Column name → type, of a query. */
  readonly types: (sql: string) => Promise<Readonly<Record<string, string>>>;
  readonly close: () => void;
};

export const openDuckDb = async (): Promise<DuckDb> => {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  const read = async (sql: string) => (await connection.runAndReadAll(sql)).getRowObjects();
  return {
    rows: async (sql) =>
      (await read(sql)).map((row) =>
        Object.fromEntries(Object.entries(row).map(([name, value]) => [name, reduce(value)])),
      ),
    types: async (sql) =>
      Object.fromEntries(
        (await read(`DESCRIBE ${sql}`)).map((row) => [String(row.column_name), String(row.column_type)]),
      ),
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
};

const reduce = (value: unknown): DuckValue => {
  if (typeof value !== 'object' || value === null) return value as DuckValue; // what is no class
  const { value: decimal, micros } = value as { readonly value?: bigint; readonly micros?: bigint }; // one of the two classes
  return decimal ?? micros ?? String(value);
};
