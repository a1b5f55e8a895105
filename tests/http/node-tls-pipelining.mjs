// Node's HTTP parser loses requests that are pipelined over TLS. `node node-tls-pipelining.mjs` prints how many of 1,200 requests were answered, and the
// errors of the server: HPE_PAUSED on Node 20, 22, 24 and 26. `node node-tls-pipelining.mjs stream` has the workaround, and no error.
//
// The server pauses the parser while responses wait for a slow reader. The TLS wrap that the parser reads from has decrypted several records by then
// and still passes them on; a paused parser answers HPE_PAUSED and forgets them. A `data` listener makes the parser read from the stream, which
// keeps what arrives while it is paused.
import { fork } from 'node:child_process';
import { createServer } from 'node:https';
import { connect } from 'node:tls';

const pipelined = 6;
const connections = 200;
const isWorkaround = process.argv.includes('stream');
/** TLS without a certificate. */
const tls = /** @type {const} */ ({ ciphers: 'AECDH-AES256-SHA:@SECLEVEL=0', maxVersion: 'TLSv1.2' });

const serve = () => {
  /** @type {Record<string, number>} */
  const errors = {};
  const server = createServer(
    tls,
    ({ url = '' }, response) => void response.end(url.padEnd(Number(url.split('-')[1]))),
  );
  if (isWorkaround) server.on('secureConnection', (socket) => void socket.on('data', () => {}));
  server.on('clientError', ({ code = '' }, socket) => {
    errors[code] = (errors[code] ?? 0) + 1;
    socket.destroy();
  });
  server.listen(0, '127.0.0.1', () => process.send?.(server.address()));
  process.on('message', () => process.send?.(errors));
};

/** @param {number} port */
const askOnce = (port) =>
  new Promise((resolve) => {
    const socket = connect({ ...tls, host: '127.0.0.1', port, rejectUnauthorized: false });
    const paths = Array.from({ length: pipelined }, (_, i) => `/${i}-${30_000 + Math.floor(Math.random() * 250_000)}`);
    const bytesMax = paths.reduce((sum, path) => sum + Number(path.split('-')[1]), 0);
    let received = 0;
    let asked = 0;
    const ask = () => {
      const path = paths[asked++];
      if (path !== undefined) socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, ask); // each is a TLS record
    };
    const bursts = setInterval(() => (Math.random() < 0.5 ? socket.pause() : socket.resume()), 3);
    const finish = () => {
      clearInterval(bursts);
      socket.destroy();
      resolve(received >= bytesMax ? pipelined : 0);
    };
    socket.once('secureConnect', ask);
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (received >= bytesMax) finish();
    });
    socket.on('error', finish).on('close', finish);
  });

const run = async () => {
  const child = fork(process.argv[1] ?? '', ['serve', ...process.argv.slice(2)]);
  const { port } = await new Promise((resolve) => child.once('message', resolve));
  let left = connections;
  let answered = 0;
  const client = async () => {
    while (left-- > 0) {
      const count = await askOnce(port);
      answered += count;
    }
  };
  await Promise.all(Array.from({ length: 20 }, client));
  child.send('errors?');
  const errors = await new Promise((resolve) => child.once('message', resolve));
  child.kill();
  process.stdout.write(
    `${JSON.stringify({ node: process.version, asked: connections * pipelined, answered, errors })}\n`,
  );
};

if (process.argv.includes('serve')) serve();
else await run();
