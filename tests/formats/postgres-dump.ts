// A schema of PostgreSQL as text, and back: its packages have no pg_dump. The statements that made the tables are recorded while they run.
import type postgres from 'postgres';

export type Dump = {
  readonly schema: string;
  /** As the release ran them, in order. */
  readonly statements: readonly string[];
  /** Rows by table, each as PostgreSQL writes a row as text. */
  readonly rows: Readonly<Record<string, readonly string[]>>;
  /** The last value of each sequence. */
  readonly sequences: Readonly<Record<string, number>>;
};

/** Call it before the release creates its tables. */
export const recordStatements = async (database: postgres.Sql): Promise<void> => {
  await database`CREATE TABLE public.statements (number int GENERATED ALWAYS AS IDENTITY, statement text)`;
  await database.unsafe(`CREATE FUNCTION public.record_statement() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO public.statements (statement) VALUES (current_query()); END $$`);
  await database`CREATE EVENT TRIGGER record ON ddl_command_end EXECUTE FUNCTION public.record_statement()`;
};

export const dumpSchema = async (database: postgres.Sql, schema: string): Promise<Dump> => {
  const recorded = await database<{ statement: string }[]>`SELECT statement FROM public.statements ORDER BY number`;
  const tables = await database<{ name: string }[]>`
    SELECT relname AS name FROM pg_class WHERE relnamespace = ${schema}::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    ORDER BY 1`;
  const sequences = await database<{ name: string; value: string | null }[]>`
    SELECT sequencename AS name, last_value AS value FROM pg_sequences WHERE schemaname = ${schema}`;
  const rows: Record<string, readonly string[]> = {};
  for (const { name } of tables) {
    const found = await database.unsafe<{ text: string }[]>(`SELECT r::text AS text FROM ${schema}.${name} r`);
    rows[name] = found.map(({ text }) => text);
  }
  return {
    schema,
    statements: recorded.map(({ statement }) => statement),
    rows,
    sequences: Object.fromEntries(
      sequences.flatMap(({ name, value }) => (value === null ? [] : [[name, Number(value)]])),
    ),
  };
};

/** Creates the schema again, in a database that does not have it. */
export const loadSchema = async (
  database: postgres.Sql,
  { schema, statements, rows, sequences }: Dump,
): Promise<void> => {
  for (const statement of statements) await database.unsafe(statement);
  for (const [table, texts] of Object.entries(rows)) {
    const name = `${schema}.${table}`;
    const select = `SELECT (r::${name}).* FROM unnest($1::text[]) r`;
    if (texts.length > 0) await database.unsafe(`INSERT INTO ${name} OVERRIDING SYSTEM VALUE ${select}`, [[...texts]]);
  }
  for (const [name, value] of Object.entries(sequences))
    await database`SELECT setval(${`${schema}.${name}`}::regclass, ${value})`;
};
