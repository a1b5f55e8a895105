// HTTP as bytes on a socket: what a client library would never send, and exactly what comes back.
import { connect, type Socket } from 'node:net';

export type RawAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type Exchange = {
  readonly answers: readonly RawAnswer[];
  /** Bytes that belong to no answer. */
  readonly rest: string;
};

export type ExchangeOptions = {
  /** Ends once so many answers are there; without it, when the server closes. */
  readonly answersMax?: number;
  /** Closes our side after writing, so that a request left open is not waited for. */
  readonly halfClose?: boolean;
};

/** Neither answered nor closed for this long is a server that hangs; its own time-outs are shorter. */
const patienceMs = 15_000;

/** Writes bytes on a new connection and reads answers until it is over. */
export const exchange = (
  port: number,
  bytes: string | Buffer,
  { answersMax = Number.POSITIVE_INFINITY, halfClose = false }: ExchangeOptions = {},
): Promise<Exchange> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    const answers: RawAnswer[] = [];
    let rest = '';
    const finish = (): void => {
      clearTimeout(patience);
      socket.destroy();
      resolve({ answers, rest });
    };
    const patience = setTimeout(() => {
      socket.destroy();
      reject(
        new Error(
          `Neither answered nor closed within ${patienceMs} ms: ${answers.length} answers, ${JSON.stringify(rest)}`,
        ),
      );
    }, patienceMs);
    socket.on('data', (chunk: Buffer) => {
      const split = splitAnswers(rest + chunk.toString('latin1'));
      answers.push(...split.answers);
      rest = split.rest;
      if (answers.length >= answersMax) finish();
    });
    // A reset is a way to close: what came before it counts.
    socket.on('error', finish);
    socket.on('end', finish);
    socket.on('close', finish);
    const all = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes;
    if (halfClose) socket.end(all);
    else socket.write(all);
  });

/** Takes received bytes apart by Content-Length. An answer to HEAD, which has a length and no body, fits here only if another one follows. */
const splitAnswers = (received: string): Exchange => {
  const answers: RawAnswer[] = [];
  let rest = received;
  for (;;) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return { answers, rest };
    const [statusLine = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const isHead = rest.startsWith('HTTP/1.', end + 4);
    const length = isHead ? 0 : Number(headers['content-length'] ?? 0);
    const body = rest.slice(end + 4, end + 4 + length);
    if (body.length < length) return { answers, rest };
    answers.push({ status: Number(statusLine.split(' ')[1]), headers, body });
    rest = rest.slice(end + 4 + length);
  }
};

/** A connection that stays open: each call writes one request and waits for its answer. */
export const openKeepAlive = (socket: Socket) => {
  let received = '';
  let waiting: { readonly resolve: (answer: RawAnswer) => void; readonly reject: (error: Error) => void } | undefined;
  const fail = (reason: string): void => {
    waiting?.reject(new Error(reason));
    waiting = undefined;
  };
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
    const { answers, rest } = splitAnswers(received);
    const [answer] = answers;
    if (answer === undefined) return;
    received = rest;
    waiting?.resolve(answer);
    waiting = undefined;
  });
  socket.on('error', (error) => fail(String(error)));
  socket.on('close', () => fail('The connection was closed.'));
  return {
    ask: (bytes: string): Promise<RawAnswer> =>
      new Promise((resolve, reject) => {
        waiting = { resolve, reject };
        socket.write(bytes, 'latin1');
      }),
    close: (): void => void socket.destroy(),
  };
};

/** A request head: request line, header lines, the empty line. */
export const head = (requestLine: string, ...lines: readonly string[]): string =>
  `${[requestLine, ...lines].join('\r\n')}\r\n\r\n`;

/** A header record as header lines. */
export const toLines = (headers: Readonly<Record<string, string>>): readonly string[] =>
  Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
