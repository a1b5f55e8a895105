// Live delivery as seen by a client: WebSockets that note every frame, ping and close, and handshakes that are answered otherwise.
import type { IncomingHttpHeaders } from 'node:http';
import type { ReportJson } from '@sealpost/protocol';
import { WebSocket } from 'ws';
import { parseJson, type RequestToSend } from './exchange.ts';
import type { Requester } from './requester.ts';
import { excerpt } from './verdict.ts';

/** One frame. Times are those of `performance.now`. */
export type Frame = {
  readonly atMs: number;
  readonly isBinary: boolean;
  /** What it holds if it is `{"report": {…}}`; the times of version 2 are milliseconds. */
  readonly report: unknown;
  readonly feedId: string;
  /** End of the window in milliseconds. */
  readonly toMs: number;
  /** The keys of the message and its beginning, for a message that is something else. */
  readonly keys: readonly string[];
  readonly excerpt: string;
};

export type Refusal = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly text: string };

export type Watch = {
  readonly request: RequestToSend;
  /** Resolves when the handshake is over. */
  readonly opened: Promise<
    { readonly ok: true } | { readonly ok: false; readonly refusal?: Refusal; readonly problem: string }
  >;
  readonly openedMs: () => number | undefined;
  readonly frames: readonly Frame[];
  readonly pings: readonly number[];
  readonly pongs: readonly number[];
  /** How the server ended it; undefined while it is open. */
  readonly closed: () => { readonly code: number; readonly reason: string } | undefined;
  readonly ping: () => void;
  /** Starts to close it. */
  readonly close: () => void;
  /** Ends it at once. */
  readonly end: () => void;
};

const framesMax = 5_000;
const bytesMax = 64 * 2 ** 20;
const frameBytesMax = 2 ** 20;
const refusalBytesMax = 65_536;

export type WatchParts = { readonly wsUrl: URL; readonly requester: Requester; readonly timeoutMs: number };

/** Opens a WebSocket with exactly the headers of the request. */
export function openWatch({ wsUrl, requester, timeoutMs }: WatchParts, request: RequestToSend): Watch {
  const socket = new WebSocket(
    `${wsUrl.protocol === 'https:' ? 'wss' : 'ws'}://${wsUrl.host}${wsUrl.pathname.replace(/\/$/, '')}${request.target}`,
    {
      headers: { ...requester.headersOf(request) },
      perMessageDeflate: false,
      maxPayload: frameBytesMax,
      followRedirects: false,
    },
  );
  const frames: Frame[] = [];
  const pings: number[] = [];
  const pongs: number[] = [];
  const state: { openedMs?: number; closed?: { code: number; reason: string }; bytes: number } = { bytes: 0 };
  socket.on('message', (data: Buffer, isBinary) => {
    state.bytes += data.length;
    if (frames.length < framesMax) frames.push(toFrame(data, isBinary));
    if (state.bytes > bytesMax) socket.terminate();
  });
  socket.on('ping', () => pings.length < framesMax && pings.push(performance.now()));
  socket.on('pong', () => pongs.length < framesMax && pongs.push(performance.now()));
  socket.on('close', (code, reason) => {
    state.closed ??= { code, reason: String(reason) };
  });
  const opened: Watch['opened'] = new Promise((resolve) => {
    // In all: the time limit of the library begins again with every byte.
    const limit = setTimeout(() => {
      resolve({ ok: false, problem: `no handshake within ${timeoutMs / 1_000} s` });
      socket.terminate();
    }, timeoutMs);
    for (const event of ['open', 'error', 'close', 'unexpected-response'])
      socket.once(event, () => clearTimeout(limit));
    socket.once('open', () => {
      state.openedMs = performance.now();
      resolve({ ok: true });
    });
    socket.on('error', (error: NodeJS.ErrnoException) =>
      resolve({ ok: false, problem: error.code === undefined ? error.message : `${error.message} (${error.code})` }),
    );
    socket.once('unexpected-response', (outgoing, response) => {
      readRefusal(response, timeoutMs)
        .then((text) => {
          const refusal = { status: response.statusCode ?? 0, headers: response.headers, text };
          resolve({ ok: false, refusal, problem: `${refusal.status} ${excerpt(text)}`.trim() });
        })
        .finally(() => outgoing.destroy());
    });
  });
  return {
    request,
    opened,
    openedMs: () => state.openedMs,
    frames,
    pings,
    pongs,
    closed: () => state.closed,
    ping: () => void (socket.readyState === WebSocket.OPEN && socket.ping('sealpost')),
    close: () => socket.close(1000),
    end: () => socket.terminate(),
  };
}

const toFrame = (data: Buffer, isBinary: boolean): Frame => {
  const text = data.toString('utf8');
  const message = Object(parseJson(text));
  const { report } = message;
  const { feedID, observationsTimestamp, observationsTimestampMs } = Object(report);
  const [ms, seconds] = [observationsTimestampMs, observationsTimestamp].map((time) =>
    typeof time === 'number' ? time : Number.NaN,
  ) as [number, number]; // two in the list
  const toMs = observationsTimestampMs === undefined ? seconds * 1_000 : ms;
  return {
    atMs: performance.now(),
    isBinary,
    report,
    feedId: typeof feedID === 'string' ? feedID : '',
    toMs,
    keys: Object.keys(message),
    excerpt: excerpt(text),
  };
};

/** The body of a handshake that was answered otherwise, as far as it comes in time. */
const readRefusal = async (
  response: AsyncIterable<Buffer> & { destroy: () => unknown },
  timeoutMs: number,
): Promise<string> => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const deadline = setTimeout(() => response.destroy(), timeoutMs);
  try {
    for await (const chunk of response) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > refusalBytesMax) break;
    }
  } catch {
    // What came until then is enough to describe it.
  } finally {
    clearTimeout(deadline);
  }
  return Buffer.concat(chunks).toString('utf8');
};

/** A frame of version 1 as REST would show it. */
export const frameReport = ({ report }: Frame): ReportJson => report as ReportJson; // its shape was checked
