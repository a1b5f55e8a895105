// What the server takes from Node that is not public, all of it: each with what it gains, and with what happens on a release without it. A test compares
// the bytes sent with Node's own.
import type { ChildProcess } from 'node:child_process';
import { IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';

/** How long a connection may wait for its next request. */
export const keepAliveMs = 10_000;

/** What Node sends as the head once it is there. */
type WithHead = ServerResponse & { _header: string | null };

/** Can the head of this answer be given as a text? Only for a connection that stays open; Node writes the other heads, and all of them without the property. */
export const takesHead = (response: ServerResponse): boolean => response.shouldKeepAlive && '_header' in response;

/**
 * Writes heads of header lines as texts, with a Date that is rendered once a second: a head and a body of ASCII characters, which `end` then sends in one
 * write, or the head before a body that follows. Node checks every header again and needs two writes: 15 % of the CPU of `latest` (D64). Header values must have been checked.
 */
export function createHeadWriter() {
  let second = Number.NaN;
  let line = '';
  const dateLine = (ms: number): string => {
    const now = Math.floor(ms / 1_000);
    if (now !== second) {
      second = now;
      line = `Date: ${new Date(ms).toUTCString()}\r\n${tail}`;
    }
    return line;
  };
  return (response: ServerResponse, status: number, lines: string, body = ''): void => {
    const first = statusLines.get(status) ?? statusLine(status);
    response.statusCode = status;
    (response as WithHead)._header = `${first}${lines}${dateLine(Date.now())}${body}`; // asked for in takesHead
  };
}

const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
const statusLines = new Map([200, 206, 304, 400, 401, 404].map((status) => [status, statusLine(status)]));

const tail = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1_000}\r\n\r\n`;

// Without a body, a request needs neither an object of all headers, in which Node looks for `Expect`, nor a stream that is read, ended and closed after the answer:
// together 12 % of the CPU of `latest` (D162). Only public members are overridden; on a release without the getters Node's own are used.

/** What Node's server looks for before it hands a request over; `Host` only where `requireHostHeader` is on. */
const lookedFor: readonly string[] = ['expect', 'content-length', 'transfer-encoding'];
const lengths: readonly number[] = lookedFor.map((name) => name.length);

const isLookedFor = (name: string): boolean => lengths.includes(name.length) && lookedFor.includes(name.toLowerCase());

const hasAny = (rawHeaders: readonly string[]): boolean => {
  for (let i = 0; i < rawHeaders.length; i += 2) if (isLookedFor(rawHeaders[i] as string)) return true; // below the length
  return false;
};

/**
 * A class, because Node constructs it. The stream of an empty body has no events: nothing behind this listener reads a body. A body that is there,
 * or may still come, is Node's to handle.
 */
class ListenerRequest extends IncomingMessage {
  isHandedOver = false;
  isEmpty = false;
  isStarted = false;

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (chunk === null && !this.isStarted) {
      this.isEmpty = true;
      return false;
    }
    this.isStarted = true;
    return super.push(chunk, encoding);
  }

  override resume(): this {
    if (this.isEmpty) return this;
    this.isStarted = true;
    return super.resume();
  }
}

/** Replaces a getter that the class inherits: its types call these properties fields, which a class may not override with getters. */
const overrideGetter = (
  name: 'headers' | 'readableEnded',
  read: (request: ListenerRequest, get: () => unknown) => unknown,
): void => {
  for (let owner: object | null = IncomingMessage.prototype; owner !== null; owner = Object.getPrototypeOf(owner)) {
    const known = Object.getOwnPropertyDescriptor(owner, name);
    if (known?.get === undefined) continue;
    const { get } = known;
    Object.defineProperty(ListenerRequest.prototype, name, {
      ...known,
      get(this: ListenerRequest) {
        return read(this, get);
      },
    });
    return;
  }
};

const noHeaders = Object.freeze({});
overrideGetter('headers', (request, get) =>
  request.isHandedOver || hasAny(request.rawHeaders) ? get.call(request) : noHeaders,
);
overrideGetter('readableEnded', (request, get) => request.isEmpty || get.call(request));

/** For Node's option `IncomingMessage`, beside `requireHostHeader: false`. */
export const requestClass: typeof IncomingMessage = ListenerRequest;

/** To be called before a handler gets a request: from then on `headers` has all of them. */
export function completeHeaders(request: IncomingMessage): void {
  (request as ListenerRequest).isHandedOver = true; // made by the listener, of the class above
}

/** What a TCP connection counts: bytes given to it, and those that the kernel has not taken yet. */
type Counts = { readonly bytesWritten?: number; readonly writeQueueSize?: number };

const countsOf = (socket: Socket): Counts => (socket as { readonly _handle?: Counts | null })._handle ?? {}; // node's own field, which its types leave out

/** Bytes of a connection that wait in this process. `raw` is the connection under a TLS socket, or the socket itself. */
export const bytesWaiting = (front: Socket, raw: Socket): number =>
  front.writableLength + (front === raw ? 0 : (countsOf(raw).writeQueueSize ?? 0));

/**
 * Bytes that the kernel has taken. The stream's own counters, which are used where the connection has none, move only when a whole chunk is gone: a client
 * that reads a page of 2 MB within 10 s would be cut as one that reads nothing.
 */
export function bytesGone(front: Socket, raw: Socket): number {
  const { bytesWritten, writeQueueSize } = countsOf(raw);
  if (bytesWritten !== undefined && writeQueueSize !== undefined) return bytesWritten - writeQueueSize;
  return front.bytesWritten - front.writableLength;
}

/**
 * What Node's cluster sends with a new connection, and what a worker replies. Without it, connections that were handed to a worker that ended before it took
 * them stay open and are never answered: a client waits until it gives up, and each costs a descriptor for good.
 */
type ClusterMessage = {
  readonly cmd?: unknown;
  readonly act?: unknown;
  readonly seq?: number;
  readonly ack?: number;
};
type Handle = { readonly close?: () => void };

/** Watches the connections that a worker is given, from its start. Returns what closes those that it has not taken; to be called when it has ended. */
export function watchHandedOver(child: ChildProcess): () => void {
  const waiting = new Map<number | undefined, Handle>();
  const send = child.send.bind(child);
  child.send = (message: unknown, handle?: unknown, ...rest: unknown[]): boolean => {
    const { cmd, act, seq } = Object(message) as ClusterMessage; // ours have none of these
    if (cmd === 'NODE_CLUSTER' && act === 'newconn' && handle) waiting.set(seq, handle as Handle); // the connection
    return (send as (...all: unknown[]) => boolean)(message, handle, ...rest); // its overloads are one function
  };
  child.on('internalMessage', ({ ack }: ClusterMessage) => waiting.delete(ack)); // taken, or given to another one
  return () => {
    for (const handle of waiting.values()) handle.close?.();
    waiting.clear();
  };
}
