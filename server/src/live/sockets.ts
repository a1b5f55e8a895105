// Owns a WebSocket connection: the handshake once it is granted, pings, what the client sends, and how it closes. Reports go straight to
// the connection as frames that all subscribers share; the `ws` package does the rest of the protocol (D66).
import { ApiError } from '@sealpost/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Upgrade } from '../http/routes/context.ts';
import { type Ending, endings, type Line } from './connections.ts';
import type { Tally } from './tally.ts';

/** What one message of a client may hold: none is read, so a small one is ignored and a larger one ends the connection with 1009. */
const messageBytesMax = 4_096;
/** How long a client that was told to go has to close. */
const closeMaxMs = 5_000;

export type SocketRules = {
  /** A client with more than this waiting for it is too slow. */
  readonly bufferBytesMax: number;
  /** A client that was not heard for so long is pinged; one that does not answer as long again is gone. */
  readonly keepAliveMs: number;
};

/** A connection that frames are written to. */
export type SocketLine = Line & {
  readonly collect: () => void;
  readonly write: (frame: Buffer) => void;
  readonly flush: () => void;
};

/** Refuses a handshake that no WebSocket client sends. */
export const checkHandshake = (upgrade: Upgrade | undefined): Upgrade => {
  const {
    upgrade: wanted,
    'sec-websocket-key': key,
    'sec-websocket-version': version,
  } = upgrade?.request.headers ?? {};
  if (upgrade?.request.method !== 'GET' || wanted?.toLowerCase() !== 'websocket')
    throw new ApiError('upgrade_required');
  if (version !== '13')
    throw new ApiError('upgrade_required', 'This path speaks version 13 of WebSocket. Send Sec-WebSocket-Version: 13.');
  if (key === undefined) throw headerError('missing_header', 'Sec-WebSocket-Key is missing.');
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw headerError('malformed_header', 'Sec-WebSocket-Key is not 16 bytes in Base64.');
  return upgrade;
};

const headerError = (code: 'missing_header' | 'malformed_header', text: string): ApiError =>
  new ApiError(code, text, { header: 'Sec-WebSocket-Key' });

/** Makes the way to complete handshakes; `onClose` of each hears the close code once. */
export const createSockets = (rules: SocketRules, monotonicMs: () => number) => {
  let extra: readonly string[] = [];
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    handleProtocols: () => false,
    closeTimeout: closeMaxMs,
  } as ConstructorParameters<typeof WebSocketServer>[0]);
  server.on('headers', (lines) => {
    for (let i = 0; i + 1 < extra.length; i += 2) lines.push(`${extra[i]}: ${extra[i + 1]}`);
  });
  return (
    { request, socket, head }: Upgrade,
    headers: readonly string[],
    tally: Tally,
    onClose: (code: number) => void,
  ): SocketLine => {
    let line: SocketLine | undefined;
    extra = headers; // used within the next call
    server.handleUpgrade(request, socket, head, (webSocket) => {
      line = holdSocket(webSocket, socket, rules, monotonicMs, tally, onClose);
    });
    if (line !== undefined) return line;
    throw new Error('A handshake that was checked was not completed.'); // the connection is gone, or our check is not ws's
  };
};

const holdSocket = (
  webSocket: WebSocket,
  socket: Upgrade['socket'],
  { bufferBytesMax, keepAliveMs }: SocketRules,
  monotonicMs: () => number,
  tally: Tally,
  onClose: (code: number) => void,
): SocketLine => {
  let heardMs = monotonicMs();
  let pingedMs: number | undefined;
  let ended: Ending | undefined;
  const hear = (): void => {
    heardMs = monotonicMs();
    pingedMs = undefined;
  };
  const end = (why: Ending): void => {
    if (ended !== undefined) return;
    ended = why;
    tally.ended = why;
    if (why === 'silent') webSocket.terminate();
    else webSocket.close(endings[why].code, endings[why].text);
  };
  webSocket.on('ping', hear);
  webSocket.on('pong', hear);
  webSocket.on('message', hear);
  webSocket.on('error', () => {}); // it closes, with the code that says why
  webSocket.once('close', (code) => onClose(ended === undefined ? code : endings[ended].code));
  const checkBuffer = (): void => {
    if (socket.writableLength > bufferBytesMax) end('too_slow');
  };
  return {
    end,
    destroy: () => webSocket.terminate(),
    collect: () => socket.cork(),
    write: (frame) => {
      if (webSocket.readyState !== webSocket.OPEN) return;
      socket.write(frame);
      tally.messages += 1;
      tally.bytes += frame.length;
    },
    flush: () => {
      socket.uncork();
      checkBuffer();
    },
    tend: (now) => {
      if (ended !== undefined) return;
      checkBuffer();
      if (pingedMs !== undefined) {
        if (now - pingedMs >= keepAliveMs) end('silent');
      } else if (now - heardMs >= keepAliveMs && webSocket.readyState === webSocket.OPEN) {
        pingedMs = now;
        webSocket.ping();
      }
    },
  };
};
