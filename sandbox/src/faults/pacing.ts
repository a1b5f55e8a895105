// Makes answers late, slow or short. Whatever waits here ends when its client leaves, and when the node drains.
import type { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { ClientGoneError } from '@sealpost/server/access/long-work';
import type { Answer } from '@sealpost/server/http/answer';

export type Pacing = ReturnType<typeof createPacing>;

/** Slow bodies go out this often, or a byte at a time. */
const dripEveryMs = 100;

const bytesOf = (body: NonNullable<Answer['body']>): Buffer => {
  if (typeof body === 'string') return Buffer.from(body);
  return Buffer.isBuffer(body) ? body : Buffer.concat(body);
};

/** Sends a body by other means, after a head that promises all of it. */
const withBody = (answer: Answer, body: Buffer, takeOver: (response: ServerResponse) => void): Answer => {
  const { status, contentType = 'application/json', cacheControl, tag, headers = [] } = answer;
  return {
    status,
    contentType,
    cacheControl,
    ...(tag !== undefined && { tag }),
    headers: [...headers, 'Content-Length', String(body.length)],
    takeOver,
  };
};

/** Bytes that a client may send before it is upgraded. */
const earlyBytesMax = 65_536;

/** Reads a connection that nobody reads, to learn when its client leaves. Returns the way to stop, which puts back what came. */
const readMeanwhile = (connection: Duplex): (() => void) => {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const end = (): void => void connection.destroy();
  const take = (chunk: Buffer): void => {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > earlyBytesMax) end();
  };
  connection.on('data', take).once('end', end);
  return () => {
    connection.off('data', take).off('end', end).pause();
    if (bytes > 0 && !connection.destroyed) connection.unshift(Buffer.concat(chunks));
  };
};

export function createPacing() {
  const waiting = new Set<() => void>();
  let isDraining = false;
  /** Calls back every so many ms until it is stopped or the client leaves; once the node drains, calls `onDrain` instead, once. */
  const repeat = (
    response: ServerResponse,
    everyMs: number,
    call: (stop: () => void) => void,
    onDrain: () => void,
  ): void => {
    const stop = (): void => {
      clearInterval(timer);
      waiting.delete(hurry);
      response.off('close', stop);
    };
    const hurry = (): void => {
      stop();
      onDrain();
    };
    const timer = setInterval(() => call(stop), everyMs).unref();
    waiting.add(hurry);
    response.once('close', stop);
    if (isDraining) hurry();
  };
  return {
    /** Resolves after so many ms; rejects with ClientGoneError when the client leaves before. `upgraded` is a connection that its parser released. */
    wait: (ms: number, response: ServerResponse, upgraded?: Duplex): Promise<void> =>
      new Promise((resolve, reject) => {
        const giveBack = upgraded && readMeanwhile(upgraded);
        const gone = (): void => {
          giveBack?.();
          reject(new ClientGoneError('The client has left.'));
        };
        if (response.destroyed) return gone();
        response.once('close', gone);
        const done = (): void => {
          response.off('close', gone);
          giveBack?.();
          resolve();
        };
        const end = (stop: () => void): void => {
          stop();
          done();
        };
        repeat(response, Math.max(1, ms), end, done);
      }),
    /** The same answer, with so many bytes of its body per second. */
    slow: (answer: Answer, body: NonNullable<Answer['body']>, bytesPerSecond: number): Answer => {
      const bytes = bytesOf(body);
      const everyMs = Math.max(dripEveryMs, 1_000 / bytesPerSecond);
      const step = Math.max(1, Math.round((bytesPerSecond * everyMs) / 1_000));
      return withBody(answer, bytes, (response) => {
        let sent = 0;
        const drip = (stop: () => void): void => {
          const next = bytes.subarray(sent, sent + step);
          sent += next.length;
          if (sent < bytes.length) return void response.write(next);
          stop();
          response.end(next);
        };
        repeat(response, everyMs, drip, () => response.end(bytes.subarray(sent)));
      });
    },
    /** Ends every wait now, and from now on none begins. */
    drain: (): void => {
      isDraining = true;
      for (const hurry of [...waiting]) hurry();
    },
  };
}

/** The same answer, cut off after so many bytes of its body, of which there is always more. */
export function truncateAnswer(answer: Answer, body: NonNullable<Answer['body']>, count: number | undefined): Answer {
  const bytes = bytesOf(body);
  const part = bytes.subarray(0, Math.min(count ?? Math.floor(bytes.length / 2), bytes.length - 1));
  return withBody(answer, bytes, (response) => {
    if (part.length === 0)
      response.socket?.write('', () => response.destroy()); // once the head is out
    else response.write(part, () => response.destroy());
  });
}
