// Frames of a hostile server to the SDK's WebSocket transport, over a real socket, in two pieces.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { SealpostError } from '@sealpost/client';
import { oneLine } from '@sealpost/protocol';
import type { ReceivedReport } from '../../../client/src/stream/received-report.ts';
import { loadSockets } from '../../../client/src/stream/socket-node.ts';
import { sampleFrames } from '../frames.ts';
import { createMaterial, reportJsonOf } from '../material.ts';
import { shapeOf, type Target } from '../target.ts';
import { checkReceived } from './events.ts';

const acceptOf = (key: string): string =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');

const neverFull = { isFull: () => false, drained: async () => {}, onChange: () => () => {} };

/** A server that completes each handshake, sends what `next` returns, and closes its side. */
const openHostileServer = async (next: () => Buffer) => {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', (chunk: Buffer) => {
      const key = /sec-websocket-key: (\S+)/i.exec(chunk.toString('latin1'))?.[1] ?? '';
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${acceptOf(key)}\r\n\r\n`,
      );
      const bytes = next();
      const half = bytes.length >> 1;
      socket.write(bytes.subarray(0, half));
      setImmediate(() => socket.end(bytes.subarray(half)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise<void>((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
};

export const openClientFrames = async (): Promise<Target> => {
  const { reports } = await createMaterial();
  const transport = await loadSockets();
  assert.ok(transport !== undefined, 'ws is not installed');
  let current: Buffer = Buffer.alloc(0);
  const server = await openHostileServer(() => current);
  const url = `http://127.0.0.1:${server.port}`;
  const messages = reports.slice(0, 2).map((report) => Buffer.from(JSON.stringify({ report: reportJsonOf(report) })));
  return {
    seeds: messages.flatMap((message) => sampleFrames(false, message)),
    words: ['{"report":', 'null', '\u0081\u007e', '\u0088\u0002\u0003\u00e8', '\u0089\u0000'],
    inputBytesMax: 16_384,
    run: async (input) => {
      current = input;
      const received: ReceivedReport[] = [];
      try {
        const reason = await transport(
          {
            baseUrl: url,
            wsUrl: url,
            feedIds: [`0x0003${'a'.repeat(60)}`],
            origin: undefined,
            position: undefined,
            silenceMs: 60_000,
            sign: async () => ({}),
            nowMs: () => 0,
            backpressure: neverFull,
            signal: new AbortController().signal,
          } as never,
          { opened: () => {}, received: () => {}, missed: () => {}, report: (report) => void received.push(report) },
        );
        received.forEach(checkReceived);
        assert.equal(oneLine(reason), reason, 'a reason has control characters');
        return `${Math.min(received.length, 3)} ${shapeOf(reason)}`;
      } catch (error) {
        if (error instanceof SealpostError) return error.code;
        throw error;
      }
    },
    close: server.close,
  };
};
