// Tests beyond the 46, by name.
import type { Row } from '../bar.ts';

export const furtherBars = {
  calls: {
    test: 'a whole node whose system calls fail: each call, error, number of times and environment; then kill -9, and everything acknowledged compared byte for byte',
    files: ['tests/failing-calls/failing-calls.test.ts'],
    count: { unit: 'cases', reduced: 9, full: 204 },
    bounds: { lost: { max: 0 }, 'cases with a fault': { max: 0 } },
    control: 'taking sent reports for stored',
  },
  hostile: {
    test: 'each attacker alone beside a well-behaved client, then SIGTERM during the attack: plain, TLS, two workers',
    files: ['tests/hostile/hostile.test.ts'],
    count: { unit: 'connections of each', reduced: 1, full: 50 },
    bounds: { 'requests not answered': { max: 0 } },
    control: 'a server with Node’s defaults',
    isTimed: true,
  },
  mirror: {
    test: '`sealpost follow --to` between two real servers during ingest: kill -9 of the source, the target or the mirror in turn, and cuts of the network; then both stores are compared byte by byte',
    files: ['tests/faults/mirror.test.ts'],
    count: { unit: 'minutes', reduced: 0.1, full: 30 },
    bounds: { lost: { max: 0 }, altered: { max: 0 }, extra: { max: 0 } },
    control: 'one more report stored only at the source',
  },
  upgrade: {
    test: 'two nodes of the last release on one PostgreSQL under ingest, reads and a live stream: each replaced by this release in turn, then one rolled back; a node with a store in a folder, replaced by two workers and rolled back; everything acknowledged compared byte for byte',
    files: ['tests/formats/rolling.test.ts'],
    count: { unit: 'rolling upgrades', reduced: 1, full: 20, part: 2 },
    bounds: {
      lost: { max: 0 },
      'not delivered live': { max: 0 },
      'times `latest` went back': { max: 0 },
      'wrong answers': { max: 0 },
      'failed ones': { max: 0 },
    },
    control: 'one report deleted from the database',
  },
  onchain: {
    test: 'generated reports of all schema versions, valid or altered, to our contract, `verify` of the client and the published verifier contracts',
    files: ['tests/contracts/compiled.test.ts'],
    names: 'agreement',
    count: { unit: 'reports', reduced: 200, full: 10_000, part: 2_000 },
    bounds: { disagreements: { max: 0 } },
    control: 'the published contracts, which skip bytes that are not canonical, accepted more',
  },
  pages: {
    test: 'accessibility of every page of the explorer in both themes',
    files: ['tests/explorer/pages.test.ts'],
    count: { unit: 'widths', reduced: 2, full: 6 },
  },
  schedules: {
    test: 'the code of two or three nodes on a simulated PostgreSQL, network and clock: seeded schedules of appends, follows and rate limits, with cut and silent connections, lost notifications, killed nodes, crashes and fail-overs; invariants checked at each step',
    files: ['tests/schedules/schedules.test.ts'],
    count: { unit: 'schedules', reduced: 150, full: 1_000_000, part: 20_000 },
    bounds: { violations: { max: 0 } },
    control: 'planted bugs, from appending without the lock to tokens counted twice',
  },
  retention: {
    test: 'nodes with a retention of 30 and of 3 days on one PostgreSQL with 29 days of reports, started, stopped and killed in turn; a single node, on LMDB and PostgreSQL, first started with 3 days',
    files: ['tests/shared-retention.test.ts'],
    bounds: { 'days deleted': { max: 0 } },
    control: 'the shorter one, confirmed',
  },
  responses: {
    test: 'each response compared with its request (stream, window, bytes, request ID): 20 clients pipeline requests of 13 kinds and read in bursts, over plain HTTP, TLS, workers, HAProxy and nginx, some of them shed or aborted',
    files: ['tests/http/responses-belong.test.ts'],
    count: { unit: 'connections', reduced: 100, full: 5_000 },
    bounds: { 'of other requests': { max: 0 }, cut: { max: 0 } },
    control: 'https of Node, which loses requests',
  },
  replaced: {
    test: 'the folder or single files of a store deleted, moved or replaced under a real node during ingest; everything sent from then on must be rejected',
    files: ['tests/faults/replaced-store.test.ts'],
    count: { unit: 'replacements', reduced: 7, full: 700, part: 70 },
    bounds: { 'acknowledged afterwards': { max: 0 } },
    control: 'taking sent reports for stored',
  },
  asynchronous: {
    test: 'a PostgreSQL whose database or role is set to `synchronous_commit = off`: reports, accounts, the audit log, usage and rejected lines are written, then all of its processes are killed',
    files: ['tests/faults/postgres-async-commit.test.ts'],
    count: { unit: 'kills', reduced: 5, full: 200, part: 20 },
    bounds: { lost: { max: 0 } },
    control: 'a client that commits as the database is set to',
  },
  settings: {
    test: 'a PostgreSQL whose database or role is set to what changes the meaning of statements or the form of results, such as `standard_conforming_strings = off`: a store is made, and each part of it written, read and verified',
    files: ['tests/faults/postgres-settings.test.ts'],
    count: { unit: 'stores', reduced: 4, full: 100 },
    bounds: { altered: { max: 0 } },
    control: 'bytes as a text of SQL',
  },
} as const satisfies Readonly<Record<string, Row>>;
