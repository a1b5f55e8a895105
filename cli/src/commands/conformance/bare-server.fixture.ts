// A server that is not Sealpost: only the specification and what existing SDKs need, in plain Node, without any code of the service.
import { createHash, createHmac, randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { StoredReport } from '@sealpost/server/store/store';
import { type WebSocket, WebSocketServer } from 'ws';
import { createLiveReports, sampleFeedIds } from './live-sample.fixture.ts';

type BareAnswer = { readonly status: number; readonly body?: unknown };
type Query = URLSearchParams;

const refuse = (status: number, error: string): BareAnswer => ({ status, body: { error } });
const emptySha = createHash('sha256').update('').digest('hex');
const names = ['authorization', 'x-authorization-timestamp', 'x-authorization-signature-sha256'] as const;
const idPattern = /^0x[0-9a-f]{64}$/;
const filters: Readonly<Record<string, string>> = {
  base_asset: 'baseAsset',
  quote_asset: 'quoteAsset',
  asset_class: 'assetClass',
  feed_type: 'feedType',
  attribute_type: 'attributeType',
  status: 'status',
  network_type: 'networkType',
};
const dates: Readonly<Record<string, string>> = {
  created: 'createdAt',
  expected_decommission: 'expectedDecommissionAt',
  decommissioned: 'decommissionedAt',
};

const secondOf = (ms: number): number => Math.floor(ms / 1_000);
const toWire = ({ feedId, validFromMs, observationsMs, fullReport }: StoredReport) => ({
  feedID: feedId,
  validFromTimestamp: secondOf(validFromMs),
  observationsTimestamp: secondOf(observationsMs),
  fullReport: `0x${Buffer.from(fullReport).toString('hex')}`,
});

export type BareServer = {
  readonly url: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signers: unknown;
  readonly close: () => Promise<void>;
};

/** Opens it; without `live` it has neither WebSockets nor /api/v1/feeds nor HEAD /, which the specification does not mention. */
export const openBareServer = async (live: boolean): Promise<BareServer> => {
  const [userId, secret] = [randomUUID(), randomBytes(24).toString('base64url')];
  const source = await createLiveReports();
  const catalog: readonly Readonly<Record<string, unknown>>[] = source.streams.map((stream) => ({ ...stream }));
  const reports: StoredReport[] = [...source.history];
  const readable = new Set<string>(Object.values(sampleFeedIds));

  /** Undefined if the request is signed by the user. */
  const authenticate = ({ method, url = '', headers }: IncomingMessage): BareAnswer | undefined => {
    const [user, timestamp, signature] = names.map((name) => headers[name]);
    if (user === undefined || timestamp === undefined || signature === undefined)
      return refuse(400, 'A header is missing.');
    const isFine =
      /^[0-9a-f-]{36}$/.test(String(user)) &&
      /^\d{13}$/.test(String(timestamp)) &&
      /^[0-9a-f]{64}$/.test(String(signature));
    if (!isFine || Math.abs(Number(timestamp) - Date.now()) > 5_000) return refuse(400, 'A header is incorrect.');
    const expected = createHmac('sha256', secret)
      .update(`${method} ${url} ${emptySha} ${user} ${timestamp}`)
      .digest('hex');
    return user === userId && signature === expected ? undefined : refuse(401, 'Authentication failed.');
  };
  const discovery = (query: Query, isSigned: boolean): BareAnswer => {
    const hidden = query.get('hidden');
    if (hidden !== null && hidden !== 'true' && hidden !== 'false') return refuse(400, 'hidden is malformed.');
    const matches = (stream: Readonly<Record<string, unknown>>): boolean =>
      (stream.hidden !== true || (isSigned && hidden === 'true')) &&
      Object.entries(filters).every(([name, field]) => !query.has(name) || query.get(name) === stream[field]) &&
      Object.entries(dates).every(([name, field]) => {
        const [after, before] = [query.get(`${name}_after`), query.get(`${name}_before`)];
        const at = stream[field];
        if (after === null && before === null) return true;
        return typeof at === 'string' && (after === null || at > `${after}T24`) && (before === null || at < before);
      });
    const feeds = catalog.filter(matches).map(({ feedId, baseAsset, quoteAsset, status, ...rest }) => {
      const { hidden: _, ...shown } = rest;
      return { feedId, baseAsset, quoteAsset, status, ...shown };
    });
    return { status: 200, body: { feeds } };
  };
  const at = (feedId: string, second: number): StoredReport | undefined =>
    reports.find(
      (one) => one.feedId === feedId && secondOf(one.validFromMs) <= second && second <= secondOf(one.observationsMs),
    );
  const readTime = (raw: string | null): number | undefined =>
    raw !== null && /^\d{1,10}$/.test(raw) ? Number(raw) : undefined;
  const checkFeeds = (ids: readonly string[] | undefined): BareAnswer | undefined => {
    if (ids === undefined || ids.some((id) => !idPattern.test(id)))
      return refuse(400, 'A feed ID is missing or malformed.');
    return ids.every((id) => readable.has(id)) ? undefined : refuse(401, 'No such stream.');
  };
  const one = (report: StoredReport | undefined): BareAnswer =>
    report === undefined ? refuse(404, 'No report.') : { status: 200, body: { report: toWire(report) } };
  const bulk = (ids: readonly string[], second: number): BareAnswer => {
    const found = ids.flatMap((id) => at(id, second) ?? []);
    return { status: found.length === ids.length ? 200 : 206, body: { reports: found.map(toWire) } };
  };
  const page = (feedId: string, start: number, limit: number): BareAnswer => {
    const found = reports.filter((report) => report.feedId === feedId && secondOf(report.observationsMs) >= start);
    return { status: 200, body: { reports: found.slice(0, limit).map(toWire) } };
  };
  const readReports = (path: string, query: Query): BareAnswer => {
    const raw = query.get(path.endsWith('/bulk') ? 'feedIDs' : 'feedID');
    const ids = raw === null ? undefined : raw.split(',');
    const time = readTime(query.get(path.endsWith('/page') ? 'startTimestamp' : 'timestamp'));
    const limit = query.has('limit') ? readTime(query.get('limit')) : 10;
    const isLatest = path.endsWith('/latest');
    if ((time === undefined && !isLatest) || limit === undefined)
      return refuse(400, 'An argument is missing or malformed.');
    const bad = checkFeeds(ids);
    const [feedId = ''] = ids ?? [];
    if (bad !== undefined) return bad;
    if (isLatest) return one(reports.findLast((report) => report.feedId === feedId));
    if (path.endsWith('/bulk')) return bulk(ids ?? [], time ?? 0);
    return path.endsWith('/page') ? page(feedId, time ?? 0, Math.min(limit, 1_000)) : one(at(feedId, time ?? 0));
  };
  const answer = (request: IncomingMessage): BareAnswer => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bare');
    if (live && request.method === 'HEAD' && request.url === '/') return { status: 200 };
    if (request.method !== 'GET') return refuse(405, 'Only GET.');
    const isSigned = names.some((name) => request.headers[name] !== undefined);
    const isReports = /^\/api\/v1\/reports(\/(latest|bulk|page))?$/.test(request.url?.split('?')[0] ?? '');
    const isFeeds = live && pathname === '/api/v1/feeds';
    if (pathname === '/api/v1/discovery')
      return (isSigned ? authenticate(request) : undefined) ?? discovery(searchParams, isSigned);
    if (!isReports && !isFeeds) return refuse(404, 'No such path.');
    const refusal = authenticate(request);
    if (refusal !== undefined) return refusal;
    return isFeeds
      ? { status: 200, body: { feeds: [...readable].map((feedID) => ({ feedID })) } }
      : readReports(pathname, searchParams);
  };
  const server = createServer((request, response) => {
    const { status, body } = answer(request);
    response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close' });
    response.end(request.method === 'HEAD' || body === undefined ? undefined : JSON.stringify(body));
  });
  const sockets = new WebSocketServer({ noServer: true });
  const subscriptions = new Map<
    WebSocket,
    { readonly ids: readonly string[]; readonly isSecond: boolean; readonly sent: Map<string, number> }
  >();
  server.on('upgrade', (request, socket, head) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://bare');
    const ids = searchParams.get('feedIDs')?.split(',');
    const known = live && /^\/api\/v[12]\/ws$/.test(pathname);
    const refusal = known ? (authenticate(request) ?? checkFeeds(ids)) : refuse(404, 'No such path.');
    if (refusal !== undefined)
      return socket.end(`HTTP/1.1 ${refusal.status} No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
    sockets.handleUpgrade(request, socket, head, (opened) => {
      subscriptions.set(opened, { ids: ids ?? [], isSecond: pathname.includes('v2'), sent: new Map() });
      opened.on('close', () => subscriptions.delete(opened));
      opened.on('error', () => {});
    });
  });
  const push = (report: StoredReport): void => {
    for (const [socket, { ids, isSecond, sent }] of subscriptions) {
      const time = isSecond ? report.observationsMs : secondOf(report.observationsMs);
      if (!ids.includes(report.feedId) || time <= (sent.get(report.feedId) ?? 0)) continue;
      sent.set(report.feedId, time);
      const { feedID, fullReport } = toWire(report);
      const { validFromMs: validFromTimestampMs, observationsMs: observationsTimestampMs } = report;
      const shown = isSecond ? { feedID, validFromTimestampMs, observationsTimestampMs, fullReport } : toWire(report);
      socket.send(Buffer.from(JSON.stringify({ report: shown })), { binary: true });
    }
  };
  const timer = setInterval(() => {
    for (const report of source.next()) {
      reports.push(report);
      push(report);
    }
    for (const socket of subscriptions.keys()) socket.ping();
  }, 200);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}`,
    env: { SEALPOST_USER_ID: userId, SEALPOST_SECRET: secret },
    signers: Object.fromEntries([...source.signerSets].map(([digest, { f, addresses }]) => [digest, { f, addresses }])),
    close: async () => {
      clearInterval(timer);
      for (const socket of subscriptions.keys()) socket.terminate();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
