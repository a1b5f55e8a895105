// 16 to 23: what any client can send.
import type { Row } from '../bar.ts';

export const httpBars = {
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
