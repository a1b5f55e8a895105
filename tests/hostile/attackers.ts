// THE TABLE OF ATTACKERS. Each opens connections and does with them what no client should; when it is stopped it does nothing any more, and
// keeps every connection that it has.
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { head } from '../support/raw-http.ts';
import type { Ground } from './ground.ts';

export type Attacker = {
  readonly name: string;
  /** The listener that it attacks; on `tls` it needs one that terminates TLS, `any` does on both. */
  readonly on: 'any' | 'tls' | 'ops';
  /** A server without defenses leaves a client beside it waiting. */
  readonly slowsControl?: true;
  /** What one of `count` does. */
  readonly attack: (ground: Ground, index: number) => void;
};

const upgradeLines = [
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
];
const get = (target: string, ...lines: readonly string[]): string =>
  head(`GET ${target} HTTP/1.1`, 'Host: a', ...lines);
/** A frame of a client, masked with zeros. */
const frame = (first: number, payload = ''): Buffer =>
  Buffer.concat([Buffer.from([first, 0x80 | payload.length, 0, 0, 0, 0]), Buffer.from(payload)]);
const [ping, close, part] = [frame(0x89), frame(0x88, '\x03\xe9'), frame(0x00, 'x')];

const signedGet = ({ sign }: Ground, target: string, ...lines: readonly string[]): string =>
  get(target, ...sign(target), ...lines);
const pages = (ground: Ground, count: number): string => signedGet(ground, ground.targets.page).repeat(count);

const openWebSocket = (ground: Ground, whenOpen: (socket: Socket) => void): Socket => {
  const socket = ground.open();
  socket.write(signedGet(ground, ground.targets.socket, ...upgradeLines));
  socket.once('data', () => whenOpen(socket));
  return socket;
};

/** Writes once, reads whatever comes, and never closes. */
const holds =
  (bytes: string | ((ground: Ground) => string)): Attacker['attack'] =>
  (ground) => {
    ground
      .open()
      .resume()
      .write(typeof bytes === 'string' ? bytes : bytes(ground), 'latin1');
  };

/** Writes a beginning, then a little more again and again. */
const trickles =
  (first: string, more: string, everyMs = 200): Attacker['attack'] =>
  (ground) => {
    const socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
    socket.write(first);
    ground.every(everyMs, () => socket.write(more));
  };

/** Writes as fast as it is read, on one connection after the other. */
const floods =
  (first: string, more: string): Attacker['attack'] =>
  (ground) => {
    const flood = Buffer.from(more);
    let socket: Socket | undefined;
    ground.every(10, () => {
      if (socket === undefined || socket.destroyed) {
        socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
        socket.write(first);
      }
      if (socket.writableLength === 0) socket.write(flood);
    });
  };

const public_: readonly Attacker[] = [
  { name: 'silent', on: 'any', attack: (ground) => void ground.raw() },
  { name: 'half a head', on: 'any', attack: holds('GET /time HTTP/1.1\r\nHo') },
  { name: 'slow head', on: 'any', attack: trickles('GET /time HTTP/1.1\r\nHost: ', 'a') },
  {
    name: 'slow body',
    on: 'any',

    attack: trickles(head('POST /time HTTP/1.1', 'Host: a', 'Content-Length: 100000'), 'x'),
  },
  {
    name: 'chunks that trickle',
    on: 'any',

    attack: trickles(head('POST /time HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'), '1\r\nx\r\n'),
  },
  {
    name: 'waits for 100 Continue',
    on: 'any',

    attack: holds(head('POST /time HTTP/1.1', 'Host: a', 'Expect: 100-continue', 'Content-Length: 10')),
  },
  {
    name: 'tiny chunks at full speed',
    on: 'any',

    attack: floods(head('POST /time HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'), '1\r\nx\r\n'.repeat(20_000)),
  },
  {
    name: 'a body at full speed',
    on: 'any',

    attack: floods(head('POST /time HTTP/1.1', 'Host: a', `Content-Length: ${10 ** 15}`), 'x'.repeat(1_000_000)),
  },
  { name: 'ignores our FIN', on: 'any', attack: holds('nonsense\r\n\r\n') },
  { name: 'HTTP/2 preface', on: 'any', attack: holds('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n') },
  { name: 'CONNECT', on: 'any', attack: holds(head('CONNECT a:1 HTTP/1.1', 'Host: a')) },
  {
    name: 'huge head',
    on: 'any',

    attack: (ground) =>
      ground.every(100, () =>
        ground
          .open()
          .resume()
          .write(get('/time', `X: ${'x'.repeat(65_536)}`)),
      ),
  },
  {
    name: 'numerous headers',
    on: 'any',

    attack: (ground) =>
      ground.every(100, () =>
        ground
          .open()
          .resume()
          .write(get('/time', ...Array.from({ length: 900 }, () => 'A: b'))),
      ),
  },
  {
    name: 'never reads',
    on: 'any',

    attack: (ground) => void ground.open().pause().write(pages(ground, 60)),
  },
  {
    name: 'reads one byte per second',
    on: 'any',

    attack: (ground) => {
      const socket = ground.openSlow();
      socket.write(pages(ground, 60));
      ground.every(1_000, () => socket.resume());
    },
  },
  {
    name: 'asks, closes its side and never reads',
    on: 'any',

    attack: (ground) => void ground.open().pause().end(pages(ground, 60)),
  },
  {
    name: 'pipelines',
    on: 'any',

    attack: (ground) =>
      ground.every(200, () => ground.open().pause().write(signedGet(ground, ground.targets.latest).repeat(1_000))),
  },
  {
    name: 'compressed pages',
    on: 'any',

    attack: (ground) => {
      const socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
      ground.every(100, () => socket.write(signedGet(ground, ground.targets.page, 'Accept-Encoding: gzip')));
    },
  },
  {
    name: 'authenticates on every connection',
    on: 'any',

    attack: (ground, index) => {
      for (let i = 0; i < 20; i++) {
        const socket = ground.open({ address: `127.0.1.${index % 250}` }).resume();
        ground.every(2_000, () => socket.write(signedGet(ground, ground.targets.latest)));
      }
    },
  },
  {
    name: 'reconnect storm',
    on: 'any',

    attack: (ground) =>
      ground.every(100, () => {
        const socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
        socket.write(get('/time'));
        socket.once('data', () => socket.destroy());
      }),
  },
  {
    name: 'resets',
    on: 'any',

    attack: (ground) =>
      ground.every(100, () => {
        const socket = ground.raw();
        socket.write('GET /time HTTP/1.1\r\nHo', () => socket.resetAndDestroy());
      }),
  },
  {
    name: 'endless upgrade',
    on: 'any',

    attack: (ground) => {
      const socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
      socket.write(get('/time', ...upgradeLines));
      ground.every(200, () => socket.write('x'.repeat(1_000)));
    },
  },
  {
    name: 'pings',
    on: 'any',

    attack: (ground) => {
      const flood = Buffer.concat(Array.from({ length: 1_000 }, () => ping));
      openWebSocket(ground, (socket) => ground.every(20, () => socket.writableLength === 0 && socket.write(flood)));
    },
  },
  {
    name: 'a message in parts without end',
    on: 'any',

    attack: (ground) => {
      const flood = Buffer.concat(Array.from({ length: 100 }, () => part));
      openWebSocket(ground, (socket) => {
        socket.write(frame(0x02, 'x'));
        ground.every(20, () => socket.writableLength === 0 && socket.write(flood));
      });
    },
  },
  {
    name: 'WebSocket that never reads',
    on: 'any',

    attack: (ground) => void openWebSocket(ground, (socket) => socket.pause()),
  },
  {
    name: 'closes a WebSocket and keeps the connection',
    on: 'any',

    attack: (ground) => void openWebSocket(ground, (socket) => socket.write(close)),
  },
  {
    name: 'resubscribes',
    on: 'any',

    attack: (ground) => ground.every(100, () => openWebSocket(ground, (socket) => socket.destroy())),
  },
  {
    name: 'resumes far back',
    on: 'any',

    slowsControl: true,
    attack: (ground) =>
      ground.every(100, () => {
        const socket = ground.open({ address: '127.0.2.1' }).resume(); // its own: what bars it must not bar the attackers beside it
        socket.write(signedGet(ground, ground.targets.events, `Last-Event-ID: ${ground.lastEventId}`));
        setTimeout(() => socket.destroy(), 1_000);
      }),
  },
  {
    name: 'resumes far back and never reads',
    on: 'any',

    attack: (ground) =>
      ground.every(100, () =>
        ground
          .open()
          .pause()
          .write(signedGet(ground, ground.targets.events, `Last-Event-ID: ${ground.lastEventId}`)),
      ),
  },
  {
    name: 'most expensive arguments',
    on: 'any',

    slowsControl: true,
    attack: (ground) =>
      ground.every(100, () => {
        for (const target of ground.targets.expensive) ground.open().resume().end(signedGet(ground, target));
      }),
  },
];

const tls: readonly Attacker[] = [
  {
    name: 'half a handshake',
    on: 'tls',

    attack: (ground) => void ground.raw().write(Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01])),
  },
  { name: 'plain HTTP', on: 'tls', attack: (ground) => void ground.raw().write(get('/time')) },
  {
    name: 'leaves before the handshake',
    on: 'tls',

    attack: (ground) => ground.every(100, () => ground.raw().end()),
  },
  {
    name: 'renegotiates',
    on: 'tls',

    attack: (ground) => {
      const socket = ground.open({ maxVersion: 'TLSv1.2' }) as TLSSocket; // on a listener with TLS
      socket.write(get('/time'));
      ground.every(20, () => socket.destroyed || socket.renegotiate({ rejectUnauthorized: false }, () => {}));
    },
  },
];

const ops: readonly Attacker[] = [
  { name: 'silent', on: 'ops', attack: (ground) => void ground.ops() },
  {
    name: 'CONNECT',
    on: 'ops',

    attack: (ground) => void ground.ops().resume().write(head('CONNECT a:1 HTTP/1.1', 'Host: a')),
  },
  {
    name: 'uploads without the token',
    on: 'ops',

    attack: (ground) => {
      const socket = ground.ops().resume();
      socket.write(head('POST /ingest HTTP/1.1', 'Host: a', 'Transfer-Encoding: chunked'));
      ground.every(100, () => socket.write('1\r\nx\r\n'));
    },
  },
  {
    name: 'never reads the metrics',
    on: 'ops',

    attack: (ground) => void ground.ops().pause().write(get('/metrics').repeat(60)),
  },
];

export const attackers: readonly Attacker[] = [...public_, ...tls, ...ops];
