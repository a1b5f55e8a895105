// Live reports to WebSockets by `ws`: authenticated, by stream, each message serialized once for all who get it.
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';
import { isAuthentic } from './authenticate.mjs';

export const createFanout = (accounts) => {
  const http = createServer();
  const sockets = new WebSocketServer({ noServer: true, perMessageDeflate: false });
  const subscribers = new Map();
  const subscribe = (socket, feedIds) => {
    for (const feedId of feedIds) {
      const others = subscribers.get(feedId) ?? new Set();
      subscribers.set(feedId, others.add(socket));
    }
    socket.on('close', () => {
      for (const feedId of feedIds) subscribers.get(feedId)?.delete(socket);
    });
  };
  http.on('upgrade', (request, socket, head) => {
    if (!isAuthentic(accounts, request)) return socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n');
    const feedIds = new URL(request.url, 'http://localhost').searchParams.get('feedIDs')?.split(',') ?? [];
    sockets.handleUpgrade(request, socket, head, (client) => subscribe(client, feedIds));
  });
  return {
    http,
    deliver: (feedId, report) => {
      const message = Buffer.from(`{"report":${report}}`);
      for (const socket of subscribers.get(feedId) ?? []) socket.send(message, { binary: true });
    },
  };
};
