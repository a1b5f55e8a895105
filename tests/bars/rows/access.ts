// 1 to 15: who may read what.
import type { Row } from '../bar.ts';

export const accessBars = {
  1: {
    test: 'known answers of the signed string, and HMAC-SHA256 of random keys and texts against Node’s own',
    files: ['server/src/access/hmac.test.ts', 'protocol/src/request-signing.test.ts'],
  },
  2: {
    test: 'requests byte by byte, each with the answer it must get, signed, unsigned and wrongly signed',
    files: ['tests/raw-sockets.test.ts', 'protocol/src/request-signing.test.ts'],
  },
  3: {
    test: 'signed requests through nginx, HAProxy and Caddy: the status is the one without a proxy',
    files: ['tests/deploy.test.ts'],
    names: 'deploy: signed requests',
  },
  4: {
    test: 'the published TypeScript SDK, unmodified: all of its calls, and its stream',
    files: [
      'tests/client/published-sdk-reads.test.ts',
      'tests/client/published-sdk.test.ts',
      'tests/live-program.test.ts',
    ],
  },
  5: {
    test: 'one byte of a signed request changed, over a socket',
    files: ['tests/raw-sockets.test.ts'],
    names: 'raw sockets: one changed byte',
    count: { unit: 'requests', reduced: 1_000, full: 100_000, part: 10_000 },
    bounds: { 'rejected, in what is signed': { min: 50_000 } },
  },
  6: {
    test: 'the signed timestamp, 0 to 60 s off and in 23 other forms, on six routes: 13 digits and at most 5,000 ms pass, all else is 400 before the user is looked up',
    files: ['tests/access/clock-window.test.ts'],
    bounds: { deviations: { max: 0 } },
  },
  7: {
    test: 'the clock of a running server jumps by 30 s, back and forth, while clients with its time, clients without it and one at its rate limit ask',
    files: ['tests/access/clock-jumps.test.ts'],
    count: { unit: 'jumps', reduced: 4, full: 60 },
    bounds: {
      'of these failed': { max: 0 },
      'not rejected with 400': { max: 0 },
      'process ends': { max: 0 },
      'requests above the rate limit, at most': { max: 1 },
      'ms until a right client is accepted after a jump, at most': { max: 1_000 },
    },
    isTimed: true,
  },
  8: {
    test: 'wrong signatures of a known user and of unknown ones, in random order over loopback: one answer, and no difference in time at crops of 90, 95 and 99 %',
    files: ['tests/access/timing.test.ts'],
    names: 'timing',
    count: { unit: 'requests', reduced: 400, full: 200_000 },
    bounds: {
      'µs between their means, at most': { max: 3 },
      't of the difference, at most': { max: 10 },
      'different answers, at most': { max: 1 },
    },
    control: 'rejecting unknown users before the signature is computed',
    isTimed: true,
  },
  9: {
    test: 'unknown, hidden and forbidden streams on four routes: one answer byte for byte except for date, request ID, feed ID and rate limit, and no difference in time; every route in row 12',
    files: ['tests/access/timing.test.ts'],
    names: 'existence',
    count: { unit: 'pairs', reduced: 320, full: 100_000 },
    bounds: { 'µs between their means, at most': { max: 5 }, 'different answers, at most': { max: 1 } },
    isTimed: true,
  },
  10: {
    test: 'rate limits: 20 requests a second at a limit of 10 for a minute; two nodes on PostgreSQL; a victim that forged requests name, from its own address and from as many others',
    files: ['tests/limits.test.ts', 'tests/postgres-nodes.test.ts', 'server/src/access/node-limits.test.ts'],
    names: '(limits|node limits|postgres nodes: an account has its limit)',
    count: { unit: 'forged requests', reduced: 1_500, full: 10_000 },
    bounds: {
      'accepted of 1,200 in a minute at 10 a second, at most': { min: 604, max: 616 },
      'of these rejected': { max: 0 },
      'times the limit granted by two nodes on PostgreSQL, at most': { max: 1.1 },
    },
    isTimed: true,
  },
  11: {
    test: 'secrets rotated one after the other on two nodes of one PostgreSQL, under up to 300 requests a second and with a WebSocket at each node; at the end an entitlement is removed',
    files: ['tests/access/rotation.test.ts'],
    count: { unit: 'rotations', reduced: 2, full: 300, part: 100 },
    bounds: {
      failed: { max: 0 },
      'ms until a revoked one is rejected at both, at most': { max: 1_000 },
      'ms until its WebSockets are closed, at most': { max: 1_000 },
      'ms until a removed entitlement holds at both, at most': { max: 1_000 },
    },
    isTimed: true,
  },
  12: {
    test: '20 accounts × 50 streams × every route that names streams, and random mixes of bulk and latest, against a table that the test works out itself; one stream that may not be read fails a bulk whole',
    files: ['tests/entitlement-matrix.test.ts'],
    count: { unit: 'mixes', reduced: 80, full: 2_000 },
    bounds: { deviations: { max: 0 }, 'different answers to streams that may not be read, at most': { max: 1 } },
  },
  13: {
    test: 'nginx with a cache in front of a node: an account that may read a hidden stream, one that may not and an anonymous caller ask for the same things in random order',
    files: ['tests/http/caches.test.ts'],
    count: { unit: 'rounds', reduced: 3, full: 1_000 },
    bounds: { 'not as promised': { max: 0 } },
    control: 'answers without Cache-Control',
  },
  14: {
    test: 'canary secrets, the key and the token through the real program: its files, log, answers and metrics are searched for them; a wrong, missing or open key refuses to start; every secret rewrapped with another key under load',
    files: ['tests/secrets.test.ts', 'tests/access/rewrap.test.ts', 'server/src/access/secrets.test.ts'],
    count: { unit: 'secrets rewrapped', reduced: 100, full: 10_000 },
    bounds: { 'of these failed': { max: 0 } },
  },
  15: {
    test: 'every method on every path, headers of proxies and browsers, private paths on the public listener; TLS versions, cipher suites and renegotiation; `strace` for `connect` during requests of every kind. Others than GET, HEAD and OPTIONS are 405',
    files: ['tests/http/surface.test.ts', 'tests/tls.test.ts'],
    count: { unit: 'traced requests', reduced: 200, full: 100_000 },
    bounds: { deviations: { max: 0 }, 'connections to others': { max: 0 } },
  },
} as const satisfies Readonly<Record<string, Row>>;
