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
    names: 'signed requests',
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
    count: { unit: 'requests', reduced: 2_000, full: 100_000, part: 10_000 },
    bounds: { 'rejected, in what is signed': { min: 50_000 } },
  },
} as const satisfies Readonly<Record<string, Row>>;
