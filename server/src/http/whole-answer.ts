// Sends an answer as one text, head and body in a single write. Node checks every header again and needs two writes, which takes 15 % more
// CPU for a whole request (D64). Only for connections that stay open; Node writes the other answers.
import { type ServerResponse, STATUS_CODES } from 'node:http';
import { gzipSync } from 'node:zlib';

/** How long a connection may wait for its next request. */
export const keepAliveMs = 10_000;

/** What node sends as the head once it is there, on every release that we run on; a test holds the bytes against node's own. */
type WithHead = ServerResponse & { _header: string | null };

/** Will the connection stay open after this answer, and can its head be given as a text? */
export const takesWhole = (response: ServerResponse): boolean => response.shouldKeepAlive && '_header' in response;

/**
 * Writes heads of header lines as texts, with a Date that is rendered once a second. It sets a head and a body of ASCII characters, which `end` then sends, or
 * the head before a body that follows by `write` and `end`. Header values are not checked again: what is not ours must have passed
 * `checkHeaderValues`.
 */
export const createHeadWriter = () => {
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
    (response as WithHead)._header = `${first}${lines}${dateLine(Date.now())}${body}`; // asked for in takesWhole
  };
};

/** Rejects values that would end their header and begin another, as node does. */
export const checkHeaderValues = (headers: readonly string[]): void => {
  if (headers.some((text) => !headerText.test(text)))
    throw new Error('A header of the answer holds a control character.');
};

const headerText = /^[\t\x20-\x7e\x80-\xff]*$/;

const statusLine = (status: number): string => `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
const statusLines = new Map([200, 206, 304, 400, 401, 404].map((status) => [status, statusLine(status)]));

const tail = `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveMs / 1_000}\r\n\r\n`;

/** Below this a body goes out as it is: compressing a report costs half as much as serving it. */
export const gzipBytesMin = 8_192;

/** A body that stays the same with its gzip, where it has one, as an answer takes them. */
export const withGzip = (body: Buffer): { readonly body: Buffer; readonly packed?: Buffer } =>
  body.length < gzipBytesMin ? { body } : { body, packed: gzipSync(body, { level: 9 }) };
