// Live readers for tests: a WebSocket and an event stream, signed, with everything that they were sent.
import { get, type IncomingMessage } from 'node:http';
import { signRequest } from '@sealpost/protocol';
import { WebSocket } from 'ws';
import type { Credentials } from './running-api.ts';

export type LiveReport = {
  readonly feedID: string;
  readonly validFromTimestamp: number;
  readonly observationsTimestamp: number;
  readonly fullReport: string;
};

export type SocketClient = {
  readonly webSocket: WebSocket;
  /** What came, text frames too. */
  readonly received: readonly { readonly text: string; readonly isBinary: boolean }[];
  readonly reports: () => readonly LiveReport[];
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
};

/** A handshake that was refused. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError';
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;

  constructor(status: number, headers: IncomingMessage['headers'], body: string) {
    super(`${status} ${body}`);
    this.status = status;
    this.headers = headers;
    this.body = body;
  }
}

const signed = new Set<string>();

/** The headers of a live request, signed at the time, or as many milliseconds before as were signed before: a signature opens one connection. */
export const signLive = (target: string, { userId, secret }: Credentials, timestampMs = Date.now()) => {
  let freeMs = timestampMs;
  while (signed.has(`${userId} ${target} ${freeMs}`)) freeMs -= 1;
  signed.add(`${userId} ${target} ${freeMs}`);
  return signRequest({ method: 'GET', target, userId, timestampMs: freeMs }, secret);
};

/** Opens a WebSocket; rejects with what was answered instead. */
export const openSocket = (
  url: string,
  target: string,
  who: Credentials,
  timestampMs = Date.now(),
  headers: Readonly<Record<string, string>> = {},
): Promise<SocketClient> =>
  new Promise((resolve, reject) => {
    const webSocket = new WebSocket(`${url.replace('http', 'ws')}${target}`, {
      headers: { ...signLive(target, who, timestampMs), ...headers },
    });
    const received: { text: string; isBinary: boolean }[] = [];
    webSocket.on('message', (bytes, isBinary) => received.push({ text: String(bytes), isBinary }));
    const closed = new Promise<{ code: number; reason: string }>((over) =>
      webSocket.once('close', (code, reason) => over({ code, reason: String(reason) })),
    );
    webSocket.once('unexpected-response', async (_, response) => {
      let body = '';
      for await (const chunk of response) body += chunk;
      reject(new RefusedError(response.statusCode ?? 0, response.headers, body));
    });
    webSocket.on('error', reject);
    webSocket.once('open', () =>
      resolve({ webSocket, received, closed, reports: () => received.map(({ text }) => JSON.parse(text).report) }),
    );
  });

export type LiveServerEvent = { readonly id: string; readonly event: string; readonly data: string };

export type EventClient = {
  readonly response: IncomingMessage;
  readonly events: readonly LiveServerEvent[];
  readonly comments: () => number;
  readonly reports: () => readonly LiveReport[];
  readonly closed: Promise<void>;
  readonly close: () => void;
};

/** Opens an event stream; rejects with what was answered instead. */
export const openEvents = (
  url: string,
  target: string,
  who: Credentials,
  timestampMs = Date.now(),
  lastEventId?: string,
  others: Readonly<Record<string, string>> = {},
): Promise<EventClient> =>
  new Promise((resolve, reject) => {
    const headers = {
      ...signLive(target, who, timestampMs),
      ...(lastEventId !== undefined && { 'Last-Event-ID': lastEventId }),
      ...others,
    };
    const request = get(`${url}${target}`, { headers, agent: false }, async (response) => {
      if (response.statusCode !== 200) {
        let body = '';
        for await (const chunk of response) body += chunk;
        return reject(new RefusedError(response.statusCode ?? 0, response.headers, body));
      }
      const events: LiveServerEvent[] = [];
      let comments = 0;
      let rest = '';
      response.on('data', (chunk) => {
        const blocks = `${rest}${chunk}`.split('\n\n');
        rest = blocks.pop() ?? '';
        for (const block of blocks) {
          if (block.startsWith(':')) comments += 1;
          else events.push(parseEvent(block));
        }
      });
      const closed = new Promise<void>((over) => response.once('close', over));
      response.on('error', () => {});
      const reports = () => events.filter(({ event }) => event === 'message').map(({ data }) => JSON.parse(data));
      resolve({
        response,
        events,
        comments: () => comments,
        reports,
        closed,
        close: () => void request.destroy(),
      });
    });
    request.on('error', reject);
  });

const parseEvent = (block: string): LiveServerEvent => {
  const fields = Object.fromEntries(block.split('\n').map((line) => line.split(/: (.*)/s).slice(0, 2)));
  return { id: fields.id ?? '', event: fields.event ?? 'message', data: fields.data ?? '' };
};
