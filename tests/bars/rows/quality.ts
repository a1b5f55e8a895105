// 36 to 46: what is answered is what is documented, over time too, and whoever operates it sees what happens.
import type { Row } from '../bar.ts';

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
    test: 'Stryker’s mutants of authentication, parameters, entitlements, rate limits and stored records, against the tests beside each file; branches that those tests take; every regular expression of the packages by recheck, for more than linear time',
    files: ['tests/mutation/mutation.test.ts'],
    count: { unit: 'files', reduced: 0, full: 14, part: 1 },
    bounds: {
      '% of the mutants of a file found, at least': { min: 90 },
      'survivors in signatures, time window and entitlements': { max: 0 },
      '% of the branches of a file taken, at least': { min: 95 },
      'of these vulnerable': { max: 0 },
    },
    control: 'tests that assert nothing',
  },
  40: {
    test: 'signed requests of four kinds by an open-loop generator at 50 % and 80 % of the measured capacity, with 1,000,000 stored reports, server and generator on different cores; latency from the planned time, and from the start of a POST to a WebSocket, on LMDB and from one node to another on PostgreSQL',
    files: ['tests/load/slo.test.ts'],
    count: { unit: 'minutes at each rate', reduced: 0.02, full: 10 },
    bounds: {
      'not answered with 200': { max: 0 },
      'ms at half, 50th percentile, at most': { max: 2 },
      'ms at half, 99th percentile, at most': { max: 10 },
      'ms at half, 99.9th percentile, at most': { max: 50 },
      'ms at four fifths, 99th percentile, at most': { max: 25 },
      'ms until a report is visible, 99th percentile, at most': { max: 50 },
      'ms until it is visible at another node on PostgreSQL, 99th percentile, at most': { max: 200 },
      'cores of their own, at least': { min: 1 },
    },
    isTimed: true,
  },
  41: {
    test: 'a week in an hour: two nodes on PostgreSQL with a standby behind HAProxy, 200 clients of seven kinds, a second deployment that was restored from a backup and mirrors the first; restarts, kill -9, fail-overs, new certificates, secrets, keys and signers, backups, a full disk, a clock that jumps, conflicting reports, attackers; alert rules in Prometheus at ten times their speed',
    files: [
      'tests/soak/soak.test.ts',
      'tests/soak/measures.test.ts',
      'tests/soak/ledger.test.ts',
      'tests/soak/alerts.test.ts',
    ],
    count: { unit: 'minutes', reduced: 0.25, full: 60 },
    bounds: {
      lost: { max: 0 },
      'lost at the second deployment': { max: 0 },
      'of these not in them': { max: 0 },
      'other failures': { max: 0 },
      'reports out of order': { max: 0 },
      'served beyond retention': { max: 0 },
      'deleted too early': { max: 0 },
      'alerts that did not fire': { max: 0 },
      'alerts without a cause': { max: 0 },
      'descriptors more, at most': { max: 5 },
      '% of memory per hour, node 2, at most': { max: 5 },
      '% of memory per hour, second deployment, at most': { max: 5 },
      '% of memory per hour, mirror, at most': { max: 5 },
      '% of memory per hour, clients, at most': { max: 5 },
      '99th percentile of the last quarter to that of the second, at most': { max: 1.1 },
    },
    control: 'a leak, a dropped report and a missing alert',
    isTimed: true,
  },
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
