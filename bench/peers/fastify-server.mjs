// A Fastify server of reports that are JSON in a database: what one would write in a day instead of Sealpost. No limits, log, metrics or usage.
import Fastify from 'fastify';
import { isAuthentic } from './authenticate.mjs';

const feedIdPattern = '^0x[0-9a-f]{64}$';
const feedID = { type: 'string', pattern: feedIdPattern };
const seconds = { type: 'integer', minimum: 0 };
const query = (properties) => ({ querystring: { type: 'object', properties, required: Object.keys(properties) } });

/** `reports` reads JSON texts: latest, at, atMany, page. */
export const createServer = (reports, accounts) => {
  const server = Fastify();
  server.addHook('onRequest', async (request, reply) => {
    if (!isAuthentic(accounts, request.raw)) return reply.code(401).send({ error: 'unauthorized' });
  });
  const send = (reply, json) => reply.type('application/json; charset=utf-8').send(json);
  const sendOne = (reply, report) =>
    report === undefined ? reply.code(404).send({ error: 'not_found' }) : send(reply, `{"report":${report}}`);

  server.get('/api/v1/reports/latest', { schema: query({ feedID }) }, async (request, reply) =>
    sendOne(reply, await reports.latest(request.query.feedID)),
  );
  server.get('/api/v1/reports', { schema: query({ feedID, timestamp: seconds }) }, async (request, reply) =>
    sendOne(reply, await reports.at(request.query.feedID, request.query.timestamp)),
  );
  server.get(
    '/api/v1/reports/bulk',
    { schema: query({ feedIDs: { type: 'string' }, timestamp: seconds }) },
    async (request, reply) => {
      const feedIds = request.query.feedIDs.split(',');
      if (!feedIds.every((id) => new RegExp(feedIdPattern).test(id))) return reply.code(400).send({ error: 'feed_id' });
      const found = await reports.atMany(feedIds, request.query.timestamp);
      return send(reply.code(found.length < feedIds.length ? 206 : 200), `{"reports":[${found.join(',')}]}`);
    },
  );
  const limit = { type: 'integer', minimum: 1, maximum: 1_000 };
  server.get(
    '/api/v1/reports/page',
    { schema: query({ feedID, startTimestamp: seconds, limit }) },
    async (request, reply) => {
      const { feedID: id, startTimestamp, limit: count } = request.query;
      return send(reply, `{"reports":[${(await reports.page(id, startTimestamp, count)).join(',')}]}`);
    },
  );
  return server;
};
