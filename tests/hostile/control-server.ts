// A server without defenses, for the control of tests/hostile: node's own listener with its defaults, and `ws` with its. It reads the same store
// without slices: a resume unpacks every report and filters afterwards, candles are made of minutes, coverage reads its windows at once.
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { FeedId } from '@sealpost/protocol';
import { WebSocketServer } from 'ws';
import { coverageOf } from '../../server/src/store/coverage.ts';
import { renderReport } from '../../server/src/store/format/rendered-report.ts';
import { openStore } from '../../server/src/store/open.ts';
import { createCertificate } from '../support/certificates.ts';

const page = 'x'.repeat(500_000);
const [, , address = ''] = process.argv;
const { reports } = await openStore(address, 'read');

const readings: Readonly<Record<string, (query: URLSearchParams, feedId: FeedId) => Promise<string>>> = {
  '/reports/latest': async (_, feedId) => reports.latest(feedId)?.json ?? '{}',
  '/reports/candles': async (query, feedId) => {
    const [from, to] = [Number(query.get('from')), Number(query.get('to'))];
    const candles = await reports.candles(feedId, { from, to, resolution: 60 });
    return JSON.stringify(candles.map(({ close }) => String(close)));
  },
  '/reports/coverage': async (query, feedId) => {
    const span = { from: Number(query.get('from')), to: Number(query.get('to')) };
    const windows = await reports.windows(feedId, span.from, span.to, 1_000_000);
    return JSON.stringify(await coverageOf([windows], span));
  },
  '/reports/stream': async (query) => {
    const wanted = new Set(query.get('feedIDs')?.split(','));
    let events = '';
    for (let position = 0; ; ) {
      const next = await reports.appendedAfter(position, 256);
      for (const one of next.reports) if (wanted.has(one.feedId)) events = renderReport(one);
      position = next.position;
      if (next.reports.length < 256) return events;
      await new Promise((resolve) => setImmediate(resolve));
    }
  },
};

const answer: RequestListener = ({ url = '' }, response) => {
  if (url.includes('/page')) return void response.end(page);
  const { pathname, searchParams } = new URL(url, 'http://a');
  const reading = readings[pathname.replace('/api/v1', '')];
  const feedId = (searchParams.get('feedID') ?? '') as FeedId; // from the tests
  if (reading === undefined) return void response.end('{}');
  reading(searchParams, feedId).then((body) => response.end(body));
};
const isTls = process.argv.includes('tls');
const server = isTls ? createTlsServer(createCertificate('control'), answer) : createServer(answer);
const webSockets = new WebSocketServer({ noServer: true });
server.on('upgrade', (request, socket, first) =>
  webSockets.handleUpgrade(request, socket, first, (opened) => opened.on('error', () => {})),
);
const ops = createServer(answer);
ops.listen(0, '127.0.0.1');
server.listen(0, '127.0.0.1', () => {
  const [{ port }, { port: opsPort }] = [server.address(), ops.address()] as [AddressInfo, AddressInfo]; // both listen
  process.stdout.write(`${JSON.stringify({ port, opsPort })}\n`);
});
process.on('uncaughtException', () => {});
process.on('SIGTERM', () => server.close(() => ops.close(() => process.exit(0))));
