// A reverse proxy that serves a server under a path, and strips the path: what nginx and Caddy are usually set to do. Other paths are 404.
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

/** Listens on a free port; `url` includes the prefix. `targets` has what was asked for, as it came. */
export const openPrefixProxy = async (upstreamUrl: string, prefix: string) => {
  const { hostname, port } = new URL(upstreamUrl);
  const targets: string[] = [];
  const sockets = new Set<Duplex>();
  const ask = ({ method, url = '', headers }: IncomingMessage) => {
    targets.push(url);
    if (!url.startsWith(`${prefix}/`)) return undefined;
    return httpRequest({ hostname, port, method, path: url.slice(prefix.length), headers, agent: false });
  };
  const server = createServer((request, response) => {
    const upstream = ask(request);
    if (upstream === undefined) return void response.writeHead(404).end('no such site');
    upstream.on('error', () => response.destroy());
    response.on('close', () => upstream.destroy());
    upstream.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    upstream.end();
  });
  server.on('upgrade', (request, socket: Duplex) => {
    socket.on('error', () => socket.destroy());
    const upstream = ask(request);
    if (upstream === undefined) return void socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
    upstream.on('error', () => socket.destroy());
    upstream.on('response', () => socket.destroy());
    upstream.on('upgrade', ({ rawHeaders }, far, head) => {
      const lines = rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1]}\r\n`] : []));
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`);
      socket.write(head);
      socket.pipe(far).pipe(socket);
      far.on('error', () => socket.destroy());
      socket.on('close', () => far.destroy());
    });
    upstream.end();
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: own } = server.address() as AddressInfo; // it listens on a port
  const close = (): Promise<void> =>
    new Promise((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  return { url: `http://127.0.0.1:${own}${prefix}`, targets, close };
};
