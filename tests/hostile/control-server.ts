// A server without defenses, for the control of tests/hostile: node's own listener with its defaults, and `ws` with its.
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { createCertificate } from '../certificates.ts';

const page = 'x'.repeat(500_000);
const answer: RequestListener = ({ url = '' }, response) => void response.end(url.includes('/page') ? page : '{}');
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
