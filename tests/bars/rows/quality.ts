// 36 to 46: what is answered is what is documented, over time too, and whoever operates it sees what happens.
import type { Row } from '../bar.ts';

const notYet = 'Not written yet.';

export const qualityBars = {
  36: {
    test: 'every answer of a whole node, and of the tests of its routes, against `docs/openapi.json`; routes and answers are those of the document',
    files: ['tests/spec.test.ts', 'tests/served-documents.test.ts', 'tests/openapi-check.test.ts'],
  },
  37: {
    test: 'sequences of 5 to 25 commands (append, read, trim, close and reopen) against a model, three of five on LMDB, two on PostgreSQL',
    files: ['server/src/store/lmdb/engine.fuzz.ts', 'server/src/store/postgres/engine.fuzz.ts'],
    count: { unit: 'sequences', reduced: 20, full: 10_000, part: 500 },
    bounds: { divergences: { max: 0 }, 'sequences on lmdb': { min: 6_000 }, 'sequences on postgres': { min: 4_000 } },
  },
  38: {
    test: 'mutated inputs for every parser of outside bytes, each with an invariant: requests, frames, event streams, answers, reports, NDJSON, files, stored records; also none that hangs, crashes or takes too much memory',
    files: ['tests/fuzz/fuzz.test.ts'],
    count: { unit: 'minutes of each target', reduced: 0, full: 60, part: 5 },
    bounds: { findings: { max: 0 } },
    control: 'a decoder that trusts a length',
  },
  39: {
    test: 'mutations of authentication, parameters, entitlements, limits and records that no test finds',
    why: notYet,
  },
  40: { test: 'latency at 50 % and 80 % of capacity for ten minutes each', why: notYet },
  41: { test: 'an hour of a whole deployment under load, with restarts, rotations and faults', why: notYet },
  42: {
    test: 'the packages install from their tarballs without scripts and run on every release of Node that they list; checksums of the lock file',
    files: ['tests/lockfile.test.ts', 'tests/package.test.ts', 'tests/node-releases.test.ts'],
  },
  43: {
    test: 'secrets and signatures of a whole node, in use: none is in a log line, answer, metric or file; control characters stay inside their line',
    files: ['tests/secrets.test.ts', 'server/src/observe/log.test.ts'],
  },
  44: {
    test: 'what is counted by status equals what was sent; 10,000 accounts and 10,000 streams add no series',
    files: ['server/src/observe/metrics.test.ts', 'tests/observed-node.test.ts'],
  },
  45: {
    test: 'probes: the reason of each failure, by name, while it lasts and no longer',
    files: ['server/src/ops/ops.test.ts', 'tests/failing-calls/failing-calls.test.ts', 'tests/postgres-nodes.test.ts'],
  },
  46: {
    test: 'a log of 10,000 administrative events of which one is altered, removed or repeated: the first altered one is named',
    files: ['server/src/cli/commands/audit-trail.test.ts', 'server/src/cli/commands/audit.test.ts'],
    count: { unit: 'alterations', reduced: 12, full: 1_000 },
    bounds: { 'alterations missed': { max: 0 } },
  },
} as const satisfies Readonly<Record<string, Row>>;
