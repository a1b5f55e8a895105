// Frames of a client to the real server, after a real handshake. Another connection stays open, and gets a report after each round of inputs.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { WebSocket } from 'ws';
import { head, toLines } from '../../support/raw-http.ts';
import { createSignedReports } from '../../support/signed-reports.ts';
import { opcodes, readFrames, sampleFrames } from '../frames.ts';
import { type FuzzedService, forgetEvents, openFuzzedService } from '../fuzzed-api.ts';
import { shapeOf, type Target } from '../target.ts';

/** Close codes that the documents name: what ws says of broken frames, and ours. */
const closeCodes = [1000, 1001, 1002, 1003, 1005, 1007, 1008, 1009, 1011, 1013];

/** The clock stands still and a signature opens one connection, so targets differ. */
const handshakeOf = ({ account, feedId, nowMs }: FuzzedService, number: number) => {
  const target = `/api/v1/ws?feedIDs=${feedId}&number=${number}`;
  const signed = signRequest({ method: 'GET', target, userId: account.userId, timestampMs: nowMs() }, account.secret);
  const upgrade = head(
    `GET ${target} HTTP/1.1`,
    'Host: a',
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ...toLines(signed),
  );
  return { target, signed, upgrade };
};

/** Opens a connection, sends the bytes and half-closes; resolves with what came back when the server has closed. */
const converse = (port: number, upgrade: string, bytes: Buffer): Promise<Buffer> =>
  new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    const chunks: Buffer[] = [];
    let isSent = false;
    socket.on('data', (chunk: Buffer) => {
      chunks.push(chunk);
      if (isSent) return;
      isSent = true;
      socket.end(bytes);
    });
    socket.on('error', () => {});
    socket.on('end', () => socket.destroy());
    socket.on('close', () => resolve(Buffer.concat(chunks)));
    socket.write(upgrade);
  });

/** A client that only listens, and answers pings: one that is silent would be closed after 20 s. */
const openBystander = async (port: number, { target, signed }: ReturnType<typeof handshakeOf>) => {
  const webSocket = new WebSocket(`ws://127.0.0.1:${port}${target}`, { headers: signed });
  let isOpen = true;
  let waiting = (): void => {};
  const stop = (): void => {
    isOpen = false;
    waiting();
  };
  webSocket.on('message', () => waiting());
  webSocket.on('error', stop);
  webSocket.on('close', stop);
  await once(webSocket, 'open');
  return {
    /** Whether another message came before it was closed. */
    next: (): Promise<boolean> =>
      new Promise((resolve) => {
        waiting = () => resolve(isOpen);
        if (!isOpen) waiting();
      }),
    close: () => void webSocket.terminate(),
  };
};

export const openServerFrames = async (): Promise<Target> => {
  const fuzzed = await openFuzzedService();
  const { service, port, feedId } = fuzzed;
  const { report } = await createSignedReports('fuzz');
  let handshakes = 0;
  const bystander = await openBystander(port, handshakeOf(fuzzed, handshakes));
  let second = 1_763_200_100;
  return {
    seeds: sampleFrames(true, Buffer.from('{"subscribe":["a","b"]}')),
    words: [
      '\u0081\u0080',
      '\u0088\u0082',
      '\u0089\u00fe',
      '\u0001',
      '\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff\u00ff',
    ],
    inputBytesMax: 16_384,
    run: async (input) => {
      handshakes += 1;
      const received = await converse(port, handshakeOf(fuzzed, handshakes).upgrade, input);
      forgetEvents(fuzzed);
      const end = received.indexOf('\r\n\r\n');
      assert.match(received.toString('latin1', 0, 12), /^HTTP\/1\.1 101/, 'the handshake was not accepted');
      const frames = readFrames(received.subarray(end + 4));
      const close = frames.find(({ opcode }) => opcode === opcodes.close)?.payload;
      const code = close === undefined || close.length < 2 ? 'none' : close.readUInt16BE(0);
      // A client's own code is echoed.
      assert.ok(
        code === 'none' || closeCodes.includes(code) || (code >= 1000 && code < 5_000 && input.includes(0x88)),
        `closed with ${code}`,
      );
      return `${code} ${[...new Set(frames.map(({ opcode }) => opcode))].sort().join()} ${close === undefined ? '' : shapeOf(close.toString('latin1', 2))}`;
    },
    check: async () => {
      const isOpen = bystander.next();
      second += 1;
      await service.append([report(feedId, second, second)]);
      assert.ok(await isOpen, 'another connection was closed');
    },
    close: async () => {
      bystander.close();
      await service.close();
    },
  };
};
