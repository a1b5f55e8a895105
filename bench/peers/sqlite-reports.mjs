// Reports as JSON texts in SQLite: Node's own where this Node has it, else `libsql`; prepared statements, the primary key as index.
const openDatabase = async (file) => {
  const builtIn = await import('node:sqlite').catch(() => undefined);
  if (builtIn !== undefined) return new builtIn.DatabaseSync(file);
  const { default: Database } = await import('libsql');
  return new Database(file);
};

export const openSqliteReports = async (file) => {
  const database = await openDatabase(file);
  database.exec('PRAGMA journal_mode = WAL');
  database.exec('PRAGMA synchronous = FULL');
  database.exec(`CREATE TABLE IF NOT EXISTS reports (feed_id TEXT, observations INTEGER, valid_from INTEGER NOT NULL, report TEXT NOT NULL,
    PRIMARY KEY (feed_id, observations)) WITHOUT ROWID`);
  const insert = database.prepare('INSERT OR IGNORE INTO reports VALUES (?, ?, ?, ?)');
  const newest = database.prepare('SELECT report FROM reports WHERE feed_id = ? ORDER BY observations DESC LIMIT 1');
  const next = database.prepare(
    'SELECT report, valid_from FROM reports WHERE feed_id = ? AND observations >= ? ORDER BY observations LIMIT 1',
  );
  const list = database.prepare(
    'SELECT report FROM reports WHERE feed_id = ? AND observations >= ? ORDER BY observations LIMIT ?',
  );
  const at = (feedId, seconds) => {
    const found = next.get(feedId, seconds);
    return found !== undefined && found.valid_from <= seconds ? found.report : undefined;
  };
  return {
    insert: (rows) => {
      database.exec('BEGIN');
      for (const { feedId, observations, validFrom, report } of rows)
        insert.run(feedId, observations, validFrom, report);
      database.exec('COMMIT');
    },
    latest: (feedId) => newest.get(feedId)?.report,
    at,
    atMany: (feedIds, seconds) => feedIds.map((id) => at(id, seconds)).filter((report) => report !== undefined),
    page: (feedId, from, limit) => list.all(feedId, from, limit).map(({ report }) => report),
    close: () => database.close(),
  };
};
