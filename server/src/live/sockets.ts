// A WebSocket connection: the handshake after it is admitted, pings, messages from the client, closing. Reports are written to the connection as
// frames that all subscribers share; the `ws` package does the rest of the protocol (D66).
import { ApiError, errorOf } from '@sealpost/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Upgrade } from '../http/routes/context.ts';
import { type Ending, endings, type LiveConnection } from './connections.ts';
import type { Tally } from './tally.ts';

/** Bytes of one client message: none is read, so a small one is ignored and a larger one ends the connection with 1009. */
const messageBytesMax = 4_096;
/** Parts of one message. */
const fragmentsMax = 16;
/** How long a client has to close after our close frame. */
const closeMaxMs = 5_000;
/** A client that sends too much is cut sooner: it only needs time to read the close frame. */
const floodCloseMaxMs = 1_000;
/** What a client may send at once, and from then on per second: it has nothing to send but pings, pongs and a close frame. */
const frames = { burst: 100, perSecond: 10 } as const;
const bytes = { burst: 65_536, perSecond: 4_096 } as const;

export type SocketRules = {
  /** A client with more than this waiting for it is too slow. */
  readonly liveBufferBytesMax: number;
  /** A client that was silent for this long is pinged; if it stays silent as long again, it is disconnected. */
  readonly keepAliveMs: number;
};

/** A connection that frames are written to. */
export type SocketConnection = LiveConnection & {
  readonly collect: () => void;
  readonly write: (frame: Buffer) => void;
  readonly flush: () => void;
  /** Closes with any code; 1006 cuts the connection. */
  readonly close: (code: number) => void;
};

/** Rejects a handshake that no WebSocket client sends. */
export const checkHandshake = (upgrade: Upgrade | undefined): Upgrade => {
  const {
    upgrade: wanted,
    'sec-websocket-key': key,
    'sec-websocket-version': version,
    'sec-websocket-protocol': protocols,
  } = upgrade?.request.headers ?? {};
  if (upgrade?.request.method !== 'GET' || wanted?.toLowerCase() !== 'websocket') throw errorOf('upgrade_required');
  if (version !== '13')
    throw new ApiError('upgrade_required', 'This path supports WebSocket version 13. Send Sec-WebSocket-Version: 13.');
  if (key === undefined) throw headerError('missing_header', 'Sec-WebSocket-Key is missing.');
  if (!/^[+/0-9A-Za-z]{22}==$/.test(key))
    throw headerError('malformed_header', 'Sec-WebSocket-Key is not 16 bytes in Base64.');
  if (protocols !== undefined && !areProtocols(protocols))
    throw headerError(
      'malformed_header',
      'Sec-WebSocket-Protocol is not a comma-separated list of distinct names. Omit it: no subprotocol is supported.',
      'Sec-WebSocket-Protocol',
    );
  return upgrade;
};

const headerError = (
  code: 'missing_header' | 'malformed_header',
  text: string,
  header = 'Sec-WebSocket-Key',
): ApiError => new ApiError(code, text, { header });

/** Subprotocols that the `ws` package accepts; it would answer others itself, without our log. */
const areProtocols = (header: string): boolean => {
  const names = header.split(',').map((name) => name.replace(/^[ \t]+|[ \t]+$/g, ''));
  return (
    !/^[ \t]|[ \t]$/.test(header) &&
    names.every((name) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) &&
    new Set(names).size === names.length
  );
};

/** Creates the function that completes handshakes; it calls `onClose` once, with the close code. */
export const createWebSockets = (rules: SocketRules, monotonicMs: () => number) => {
  let extra: readonly string[] = [];
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: messageBytesMax,
    maxFragments: fragmentsMax,
    autoPong: false,
    handleProtocols: () => false,
    closeTimeout: closeMaxMs,
  } as ConstructorParameters<typeof WebSocketServer>[0]); // an option that its types leave out
  server.on('headers', (lines) => {
    for (let i = 0; i + 1 < extra.length; i += 2) lines.push(`${extra[i]}: ${extra[i + 1]}`);
  });
  return (
    { request, socket, head }: Upgrade,
    headers: readonly string[],
    tally: Tally,
    onClose: (code: number) => void,
    isSilent: () => boolean = () => false,
  ): SocketConnection => {
    let connection: SocketConnection | undefined;
    extra = headers; // used within the next call
    server.handleUpgrade(request, socket, head, (webSocket) => {
      connection = holdSocket(webSocket, socket, rules, monotonicMs, tally, onClose, isSilent);
    });
    if (connection !== undefined) return connection;
    throw new Error('A handshake that was checked was not completed.'); // the connection is gone, or our check is not ws's
  };
};

const holdSocket = (
  webSocket: WebSocket,
  socket: Upgrade['socket'],
  { liveBufferBytesMax, keepAliveMs }: SocketRules,
  monotonicMs: () => number,
  tally: Tally,
  onClose: (code: number) => void,
  isSilent: () => boolean,
): SocketConnection => {
  let heardMs = monotonicMs();
  let pingedMs: number | undefined;
  let ended: Ending | undefined;
  const end = (why: Ending): void => {
    if (ended !== undefined) return;
    ended = why;
    tally.ended = why;
    if (why === 'silent') return void webSocket.terminate();
    webSocket.close(endings[why].code, endings[why].text);
    if (why !== 'too_many_frames') return;
    webSocket.pause();
    setTimeout(() => webSocket.terminate(), floodCloseMaxMs).unref();
  };
  watchIncoming(webSocket, socket, monotonicMs, {
    onFrame: () => {
      heardMs = monotonicMs();
      pingedMs = undefined;
    },
    onTooMuch: () => end('too_many_frames'),
    isSilent,
  });
  let isBroken = false;
  webSocket.on('error', () => {
    isBroken = true; // it closes, with the code that says why
  });
  webSocket.once('close', (code) => onClose(ended === undefined ? code : endings[ended].code));
  // Both close frames have passed: a client may keep its side open for as long as it likes, and some do until they have connected again.
  // One whose frames made no sense has not seen ours yet; the guard ends it a second later.
  socket.once('finish', () => isBroken || socket.destroy());
  const checkBuffer = (): void => {
    if (socket.writableLength > liveBufferBytesMax) end('too_slow');
  };
  return {
    end,
    destroy: () => webSocket.terminate(),
    close: (code) => (code === 1006 ? webSocket.terminate() : webSocket.close(code)),
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
      if (ended !== undefined || isSilent()) return;
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

type Incoming = { readonly onFrame: () => void; readonly onTooMuch: () => void; readonly isSilent: () => boolean };

/** Reports every frame, answers pings, and counts frames and, because parts of a message are not frames yet, bytes. */
const watchIncoming = (
  webSocket: WebSocket,
  socket: Upgrade['socket'],
  monotonicMs: () => number,
  { onFrame, onTooMuch, isSilent }: Incoming,
): void => {
  const takeFrame = createAllowance(frames, monotonicMs);
  const takeBytes = createAllowance(bytes, monotonicMs);
  const isFine = (): boolean => {
    if (webSocket.readyState !== webSocket.OPEN) return false;
    onFrame();
    if (takeFrame(1)) return true;
    onTooMuch();
    return false;
  };
  // While earlier bytes wait for the client no pong is added: only the newest ping needs an answer, and it will ask again.
  webSocket.on('ping', (payload) => isFine() && !isSilent() && socket.writableLength === 0 && webSocket.pong(payload));
  webSocket.on('pong', isFine);
  webSocket.on('message', isFine);
  socket.on('data', (chunk: Buffer) => takeBytes(chunk.length) || onTooMuch());
};

/** A token bucket: takes `count` where that many are left. */
const createAllowance = ({ burst, perSecond }: typeof frames | typeof bytes, monotonicMs: () => number) => {
  let left: number = burst;
  let lastMs = monotonicMs();
  return (count: number): boolean => {
    const now = monotonicMs();
    left = Math.min(burst, left + ((now - lastMs) / 1_000) * perSecond) - count;
    lastMs = now;
    return left >= 0;
  };
};
