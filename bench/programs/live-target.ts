// A server of live reports to be measured, in a process of its own: `api` is a whole node with everything on, `bare` sends the same bytes
// to whoever connects with nothing but the `ws` package.
import { createServer } from 'node:http';
import { type WebSocket, WebSocketServer } from 'ws';
import { renderMessage } from '../../server/src/live/message.ts';
import { benchStreams, rekeyedReports } from '../rekeyed-reports.ts';
import { openBenchNode } from './bench-node.ts';

/** What the parent asks for: the use of CPU and memory so far, or one report of each stream to be sent. */
export type LiveTargetRequest = 'usage' | 'send';

/** µs of CPU; bytes in use after a collection of garbage. */
export type LiveUsage = { readonly cpu: number; readonly bytes: number };

const tell = (value: unknown): void => void process.send?.(value);

const usage = (): LiveUsage => {
  (globalThis as { gc?: () => void }).gc?.(); // the parent starts this with --expose-gc
  const { user, system } = process.cpuUsage();
  const { heapUsed, external } = process.memoryUsage();
  return { cpu: user + system, bytes: heapUsed + external };
};

/** Answers with the moment at which it began to send, in ns of the clock that all processes share. */
const answerParent = (send: () => Promise<void> | void): void => {
  process.on('message', async (request: LiveTargetRequest) => {
    if (request === 'usage') return tell(usage());
    const begun = process.hrtime.bigint();
    await send();
    tell(Number(begun));
  });
};

const batches = rekeyedReports(Math.floor(Date.now() / 1_000) - 86_400, 86_400);
const nextBatch = () => batches.next().value ?? [];

const serveApi = async (): Promise<void> => {
  const { node, userId, secret, stop } = await openBenchNode();
  answerParent(async () => void (await node.write.store.reports.append(nextBatch())));
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
  answerParent(() => {
    for (const report of nextBatch()) {
      const message = renderMessage('seconds', report, '').subarray(frameHeadBytes);
      for (const client of clients) client.send(message, { binary: true });
    }
  });
  http.listen(0, '127.0.0.1', () => {
    const { port } = http.address() as { port: number }; // it listens on one
    tell({ url: `http://127.0.0.1:${port}`, userId: crypto.randomUUID(), secret: 'none', feedIds: benchStreams });
  });
  process.once('SIGTERM', () => process.exit());
};

if (process.argv[2] === 'api') await serveApi();
else serveBare();
