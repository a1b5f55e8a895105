// A server of live reports to be measured, in its own process: `api` is a whole node with everything on, `bare` sends the same
// bytes to every client with nothing but the `ws` package.
import { createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { renderMessage } from '../../server/src/live/message.ts';
import type { StoredReport } from '../../server/src/store/store.ts';
import { benchStreams, rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

/** What the parent asks for: bytes in use after garbage collection, or one report, of each stream or of the first, to be sent. */
export type LiveTargetRequest = 'memory' | 'send' | 'sendOne';

/** When the append began and when its reports were stored, in ns of the clock that all processes share. */
export type LiveSent = { readonly begun: number; readonly stored: number };

const tell = (value: unknown): void => void process.send?.(value);
const nowNs = (): number => Number(process.hrtime.bigint());

const bytesInUse = (): number => {
  (globalThis as { gc?: () => void }).gc?.(); // the parent starts this with --expose-gc
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
};

const batches = rekeyedReports(Math.floor(Date.now() / 1_000) - 86_400, 86_400);

/** `send` resolves with the time at which the reports were stored. */
const answerParent = (send: (reports: readonly StoredReport[]) => Promise<number> | number): void => {
  process.on('message', async (request: LiveTargetRequest) => {
    if (request === 'memory') return tell(bytesInUse());
    const reports = (batches.next().value ?? []).slice(0, request === 'sendOne' ? 1 : undefined);
    const begun = nowNs();
    tell({ begun, stored: await send(reports) } satisfies LiveSent);
  });
};

const serveApi = async (): Promise<void> => {
  const { node, userId, secret, stop } = await openBenchNode(undefined, undefined, {
    connectionsPerAddress: '0',
    unreadBytesPerAccount: '268435456',
  });
  const { reports } = node.write.store;
  let stored = 0;
  reports.onAppended(() => {
    stored = nowNs();
  });
  answerParent(async (batch) => {
    await reports.append(batch);
    return stored;
  });
  tell({ url: node.url, userId, secret, feedIds: benchStreams });
  process.once('SIGTERM', async () => {
    await stop();
    process.exit();
  });
};

const frameHeadBytes = 4;

const serveBare = (): void => {
  const clients = new Set<WebSocket>();
  const http = createServer();
  const server = new WebSocketServer({ server: http, perMessageDeflate: false, clientTracking: false });
  server.on('connection', (client) => void clients.add(client));
  answerParent((batch) => {
    const stored = nowNs();
    for (const report of batch) {
      const message = renderMessage('seconds', report, '').subarray(frameHeadBytes);
      for (const client of clients) client.send(message, { binary: true });
    }
    return stored;
  });
  http.listen(0, '127.0.0.1', () => {
    const { port } = http.address() as { port: number }; // it listens on one
    tell({ url: `http://127.0.0.1:${port}`, userId: crypto.randomUUID(), secret: 'none', feedIds: benchStreams });
  });
  process.once('SIGTERM', () => process.exit());
};

if (process.argv[2] === 'api') await serveApi();
else serveBare();
