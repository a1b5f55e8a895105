// 16 to 23: what any client can send.
import type { Row } from '../bar.ts';

export const httpBars = {
  16: {
    test: 'heads and bodies that trickle and answers that are not read, by clients of our own, beside a client that behaves',
    files: ['tests/http/slow-clients.test.ts'],
    count: { unit: 'connections of each', reduced: 20, full: 1_000 },
    bounds: {
      'connections left': { max: 0 },
      'ms until the last was closed, at most': { max: 10_000 },
      'of these not answered': { max: 0 },
      'times what it was before, beside slow heads, at most': { max: 2 },
      'times what it was before, beside slow bodies, at most': { max: 2 },
      'times what it was before, beside slow readers, at most': { max: 4 },
    },
    control: 'Node’s default time-outs',
    isTimed: true,
  },
  17: {
    test: '99 raw payloads, each signed, unsigned and wrongly signed: the statuses of all answers before the server closes, and the error code; then a good request',
    files: ['tests/raw-sockets.test.ts'],
    names: 'raw sockets: (good|requests|other|connections)',
  },
  18: {
    test: 'bombs: 2,000 headers, 64 KB of one, 16 KB of query, 3,000 equal arguments, 10,000 streams, 15,000 slashes, names of object members and integers, impossible limits; unknown names are ignored and answered with 200, and the answer to 64 KB and more may be lost to a reset',
    files: ['tests/http/bombs.test.ts'],
    count: { unit: 'requests', reduced: 200, full: 10_000 },
    bounds: {
      deviations: { max: 0 },
      'ms of CPU for the most expensive on average, at most': { max: 5 },
      'MB more memory, at most': { max: 10 },
    },
    isTimed: true,
  },
  19: {
    test: 'three times the measured capacity by an open-loop generator, then half of it, server and generator on different cores: what is answered, what is rejected with 503 and Retry-After, memory, recovery',
    files: ['tests/load/overload.test.ts'],
    count: { unit: 'minutes at three times the capacity', reduced: 0.02, full: 5 },
    bounds: {
      '% of the capacity answered with 200, at least': { min: 70 },
      'of these without Retry-After': { max: 0 },
      'cut or answered otherwise': { max: 0 },
      'ms, 99th percentile of those answered, at most': { max: 250 },
      'seconds until it is as before, at most': { max: 5 },
      'not answered at half the capacity afterwards': { max: 0 },
      'MB of memory, at most': { max: 512 },
      'process ends': { max: 0 },
      'cores of their own, at least': { min: 1 },
    },
    isTimed: true,
  },
  20: {
    test: 'two nodes stopped with SIGTERM and restarted in turn under load, by clients that retry at the other node; open connections lose no request, of one process and of two workers',
    files: ['tests/restarts.test.ts'],
    count: { unit: 'restarts', reduced: 2, full: 50 },
    bounds: {
      failed: { max: 0 },
      'exit codes other than 0': { max: 0 },
      'ms until a node ended, at most': { max: 10_000 },
    },
    isTimed: true,
  },
  21: {
    test: 'more connections than a process with 256 descriptors can have, then all closed; `accept` reports nothing in Node (D165), so the log, the probe and `process_open_fds` say it',
    files: ['tests/http/descriptors.test.ts'],
    count: { unit: 'connections', reduced: 400, full: 1_000 },
    bounds: { 'process ends': { max: 0 }, 'ms until it serves again, at most': { max: 2_000 } },
    isTimed: true,
  },
  22: {
    test: 'whatever a handler waits for throws, rejects or never answers: each call of each route, listed by a run without faults; `/status.json` says that the store does not answer, all others are 500 or 503',
    files: ['tests/http/injected-faults.test.ts', 'server/src/http/answer-deadline.test.ts'],
    bounds: { 'answers not as promised': { max: 0 }, faults: { min: 100 } },
  },
  23: {
    test: 'WebSockets: idle ones that all get one report at the end, then a drain; a client that stops reading; floods of pings, messages and fragments; refused upgrades',
    files: ['tests/live-endings.test.ts', 'tests/live.test.ts'],
    count: { unit: 'idle sockets', reduced: 1_000, full: 5_000 },
    bounds: { 'closed otherwise than with 1001': { max: 0 } },
  },
} as const satisfies Readonly<Record<string, Row>>;
