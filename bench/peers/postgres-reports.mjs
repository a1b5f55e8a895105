// Reports as JSON texts in PostgreSQL, by `pg`: prepared statements, the primary key as index, several rows per insert.
import pg from 'pg';

export const openPostgresReports = async (url) => {
  const pool = new pg.Pool({ connectionString: url, max: 10 });
  await pool.query(`CREATE TABLE IF NOT EXISTS peer_reports (feed_id text, observations bigint, valid_from bigint NOT NULL,
    report text NOT NULL, PRIMARY KEY (feed_id, observations))`);
  const run = async (name, text, values) => (await pool.query({ name, text, values })).rows;
  return {
    insert: (rows) =>
      run(
        'insert',
        `INSERT INTO peer_reports SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) ON CONFLICT DO NOTHING`,
        ['feedId', 'observations', 'validFrom', 'report'].map((column) => rows.map((row) => row[column])),
      ),
    latest: async (feedId) => {
      const text = 'SELECT report FROM peer_reports WHERE feed_id = $1 ORDER BY observations DESC LIMIT 1';
      return (await run('latest', text, [feedId]))[0]?.report;
    },
    at: async (feedId, seconds) => {
      const text = `SELECT report, valid_from <= $2 AS holds FROM peer_reports
        WHERE feed_id = $1 AND observations >= $2 ORDER BY observations LIMIT 1`;
      const [found] = await run('at', text, [feedId, seconds]);
      return found?.holds ? found.report : undefined;
    },
    atMany: async (feedIds, seconds) => {
      const text = `SELECT r.report FROM unnest($1::text[]) WITH ORDINALITY AS k(feed_id, n) CROSS JOIN LATERAL (
          SELECT report, valid_from FROM peer_reports WHERE feed_id = k.feed_id AND observations >= $2 ORDER BY observations LIMIT 1
        ) AS r WHERE r.valid_from <= $2 ORDER BY k.n`;
      return (await run('atMany', text, [feedIds, seconds])).map(({ report }) => report);
    },
    page: async (feedId, from, limit) => {
      const text =
        'SELECT report FROM peer_reports WHERE feed_id = $1 AND observations >= $2 ORDER BY observations LIMIT $3';
      return (await run('page', text, [feedId, from, limit])).map(({ report }) => report);
    },
    close: () => pool.end(),
  };
};
