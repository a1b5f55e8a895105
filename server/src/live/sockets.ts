// A WebSocket connection: the handshake after it is admitted, pings, messages from the client, closing. Reports are written to the connection as
// frames that all subscribers share; the `ws` package does the rest of the protocol (D66).
import { ApiError, errorOf, withoutTrailing } from '@sealpost/protocol';
import { type WebSocket, WebSocketServer } from 'ws';
import type { Upgrade } from '../http/routes/context.ts';
import type { Tally } from './connections.ts';
import { type Ending, endings, type LiveConnection } from './connections.ts';
import type { Burst, Deliver } from './live-delivery.ts';

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
  readonly deliver: Deliver;
  /** Sends one frame. */
  readonly send: (frame: Buffer) => void;
  /** Closes with any code; 1006 cuts the connection. */
  readonly close: (code: number) => void;
};

/** Rejects a handshake that no WebSocket client sends. */
export function checkHandshake(upgrade: Upgrade | undefined): Upgrade {
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
}

const headerError = (
  code: 'missing_header' | 'malformed_header',
  text: string,
  header = 'Sec-WebSocket-Key',
): ApiError => new ApiError(code, text, { header });

/** Subprotocols that the `ws` package accepts; it would answer others itself, without our log. */
const areProtocols = (header: string): boolean => {
  const names = header.split(',').map((name) => withoutTrailing(name.replace(/^[ \t]+/, ''), ' \t'));
  return (
    !/^[ \t]|[ \t]$/.test(header) &&
    names.every((name) => /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name)) &&
    new Set(names).size === names.length
  );
};

const neverSilent = (): boolean => false;

/** Creates the function that completes handshakes; it calls `onClose` once, with the close code. */
export function createWebSockets(rules: SocketRules, monotonicMs: () => number) {
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
    isSilent: () => boolean = neverSilent,
  ): SocketConnection => {
    let connection: SocketConnection | undefined;
    extra = headers; // used within the next call
    server.handleUpgrade(request, socket, head, (webSocket) => {
      connection = holdSocket({ webSocket, socket, rules, monotonicMs, tally, isSilent }, onClose);
    });
    if (connection !== undefined) return connection;
    throw new Error('A handshake that was checked was not completed.'); // the connection is gone, or our check is not ws's
  };
}

type SocketParts = {
  readonly webSocket: WebSocket;
  readonly socket: Upgrade['socket'];
  readonly rules: SocketRules;
  readonly monotonicMs: () => number;
  readonly tally: Tally;
  readonly isSilent: () => boolean;
};

/** All that is kept of a connection, in whole milliseconds: there may be 10,000, and a fraction takes memory of its own. */
type Held = SocketParts & {
  heardMs: number;
  pingedMs: number;
  /** Why we ended it. */
  ended: Ending | undefined;
  /** Its frames made no sense. */
  isBroken: boolean;
  /** What the client may still send. */
  readonly left: { frames: number; bytes: number; atMs: number };
};

const notPinged = -1;
const wholeMs = ({ monotonicMs }: SocketParts): number => Math.floor(monotonicMs());

const holdSocket = (parts: SocketParts, onClose: (code: number) => void): SocketConnection => {
  const now = wholeMs(parts);
  const left = { frames: frames.burst, bytes: bytes.burst, atMs: now };
  const held: Held = { ...parts, heardMs: now, pingedMs: notPinged, ended: undefined, isBroken: false, left };
  watch(held, onClose);
  return {
    end: (why) => end(held, why),
    destroy: () => held.webSocket.terminate(),
    close: (code) => (code === 1006 ? held.webSocket.terminate() : held.webSocket.close(code)),
    deliver: (burst) => deliver(held, burst),
    send: (frame) => deliver(held, { messages: [frame], positions: [], bytes: frame.length, whole: frame }),
    tend: (nowMs) => tend(held, nowMs),
  };
};

const end = (held: Held, why: Ending): void => {
  const { webSocket, tally } = held;
  if (held.ended !== undefined) return;
  held.ended = why;
  tally.ended = why;
  if (why === 'silent') return void webSocket.terminate();
  webSocket.close(endings[why].code, endings[why].text);
  if (why !== 'too_many_frames') return;
  webSocket.pause();
  setTimeout(() => webSocket.terminate(), floodCloseMaxMs).unref();
};

const deliver = (held: Held, { messages, whole, bytes: sent }: Burst): void => {
  const { webSocket, socket, tally } = held;
  if (webSocket.readyState !== webSocket.OPEN) return;
  if (whole !== undefined) socket.write(whole);
  else {
    socket.cork();
    for (const message of messages) socket.write(message);
    socket.uncork();
  }
  tally.messages += messages.length;
  tally.bytes += sent;
  checkBuffer(held);
};

const checkBuffer = (held: Held): void => {
  if (held.socket.writableLength > held.rules.liveBufferBytesMax) end(held, 'too_slow');
};

const tend = (held: Held, nowMs: number): void => {
  const { webSocket, rules, isSilent } = held;
  if (held.ended !== undefined || isSilent()) return;
  checkBuffer(held);
  if (held.pingedMs !== notPinged) {
    if (nowMs - held.pingedMs >= rules.keepAliveMs) end(held, 'silent');
  } else if (nowMs - held.heardMs >= rules.keepAliveMs && webSocket.readyState === webSocket.OPEN) {
    held.pingedMs = Math.floor(nowMs);
    webSocket.ping();
  }
};

/** Handles what comes from the client: answers pings, and counts frames and, because parts of a message are not frames yet, bytes. */
const watch = (held: Held, onClose: (code: number) => void): void => {
  const { webSocket, socket } = held;
  const isFine = (): boolean => noteFrame(held);
  // While earlier bytes wait for the client no pong is added: only the newest ping needs an answer, and it will ask again.
  webSocket.on(
    'ping',
    (payload) =>
      noteFrame(held) && !held.isSilent() && held.socket.writableLength === 0 && held.webSocket.pong(payload),
  );
  webSocket.on('pong', isFine);
  webSocket.on('message', isFine);
  webSocket.on('error', () => {
    held.isBroken = true; // it closes, with the code that says why
  });
  webSocket.on('close', (code) => onClose(held.ended === undefined ? code : endings[held.ended].code));
  socket.on('data', (chunk: Buffer) => take(held, 0, chunk.length) || end(held, 'too_many_frames'));
  // Both close frames have passed: a client may keep its side open for as long as it likes, and some do until they have connected again.
  // One whose frames made no sense has not seen ours yet; the connection limits end it a second later.
  socket.on('finish', () => held.isBroken || held.socket.destroy());
};

const noteFrame = (held: Held): boolean => {
  if (held.webSocket.readyState !== held.webSocket.OPEN) return false;
  held.heardMs = wholeMs(held);
  held.pingedMs = notPinged;
  if (take(held, 1, 0)) return true;
  end(held, 'too_many_frames');
  return false;
};

/** Takes so many frames and bytes from what the client may send; false when it sends too much. */
const take = (held: Held, frameCount: number, byteCount: number): boolean => {
  const { left } = held;
  const now = wholeMs(held);
  const seconds = (now - left.atMs) / 1_000;
  left.atMs = now;
  left.frames = Math.min(frames.burst, left.frames + seconds * frames.perSecond) - frameCount;
  left.bytes = Math.min(bytes.burst, left.bytes + seconds * bytes.perSecond) - byteCount;
  return left.frames >= 0 && left.bytes >= 0;
};
