// 24 to 35: what was acknowledged is kept.
import type { Row } from '../bar.ts';

export const durabilityBars = {
  24: {
    test: 'kill -9 at a random moment of each life, everything acknowledged compared byte for byte',
    files: ['tests/faults/kill.test.ts'],
    count: { unit: 'lives', reduced: 5, full: 10_000, part: 500 },
    bounds: {
      lost: { max: 0 },
      altered: { max: 0 },
      'times `latest` went back': { max: 0 },
      'ms until a life is ready, 99th percentile, at most': { max: 2_000 },
    },
    control: 'acknowledging before the store answers',
  },
  25: {
    test: 'power cut: the image of a loop device copied while the writer is stopped, ext4 and xfs in turn',
    files: ['tests/faults/power-cut.test.ts'],
    count: { unit: 'cuts', reduced: 2, full: 500, part: 50 },
    bounds: { lost: { max: 0 }, 'cuts on ext4': { min: 250 }, 'cuts on xfs': { min: 250 } },
    control: 'never flushing',
  },
  26: {
    test: 'system calls of the writer in their order, by strace: its pages are flushed, then the write that makes the commit valid, then the acknowledgement',
    files: ['tests/faults/sync.test.ts'],
    names: 'sync:',
    count: { unit: 'reports', reduced: 300, full: 100_000, part: 25_000 },
    bounds: { 'acknowledged before the flush': { max: 0 }, 'commits without a flush': { max: 0 }, lost: { max: 0 } },
    control: 'acknowledging before the store answers',
  },
  27: {
    test: 'each of the first flushes fails with EIO in turn, by strace: what failed is not acknowledged, and what was is there',
    files: ['tests/faults/sync.test.ts'],
    names: 'fsync fails',
    count: { unit: 'flushes', reduced: 3, full: 50 },
    bounds: { lost: { max: 0 }, 'acknowledged before the flush': { max: 0 }, injected: { min: 50 } },
  },
  28: {
    test: 'a disk of 6 MB that fills up and is freed, over and over: writes are rejected by name, reads continue, and the next write after it is stored',
    files: ['tests/faults/disk-full.test.ts'],
    count: { unit: 'fillings', reduced: 2, full: 100 },
    bounds: { lost: { max: 0 }, 'unhandled rejections': { max: 0 } },
    control: 'ignoring the error',
  },
  29: {
    test: 'one flipped bit in a copy of a store, in every table and kind of page; a whole node opens it, serves everything, and receives new reports and all old ones again; another copy is repaired and read. For every ten flips, a file that is cut off',
    files: ['tests/damage/damage.test.ts', 'tests/faults/corruption.test.ts'],
    count: { unit: 'flips', reduced: 5, full: 1_000, part: 100 },
    bounds: { faults: { max: 0 }, 'truncated files that were opened': { max: 0 }, 'truncated files': { min: 100 } },
    control: 'a report altered together with its checksums',
  },
  30: {
    test: 'four processes read while the one that writes is killed -9; after every tenth kill a reader is killed inside a transaction',
    files: ['tests/faults/readers.test.ts', 'tests/faults/sharing.test.ts'],
    count: { unit: 'kills', reduced: 5, full: 1_000, part: 100 },
    bounds: {
      lost: { max: 0 },
      'reads that failed': { max: 0 },
      'times `latest` went back': { max: 0 },
      'readers killed': { min: 100 },
    },
  },
  31: {
    test: '`sealpost store backup` during ingest, restored elsewhere: all that was acknowledged before it began, byte for byte',
    files: ['tests/faults/backup.test.ts'],
    count: { unit: 'backups', reduced: 2, full: 100 },
    bounds: { lost: { max: 0 } },
    control: 'reports acknowledged after it began',
  },
  32: {
    test: 'PostgreSQL under two real nodes with reads and writes: the primary killed -9 or silent, its standby promoted at once or 3 s later, every answer compared with what was sent',
    files: ['tests/faults/postgres-failover.test.ts'],
    count: { unit: 'fail-overs', reduced: 1, full: 60, part: 3 }, // each part has one of each kind: 20 with a silent primary
    bounds: {
      lost: { max: 0 },
      'wrong answers': { max: 0 },
      'times `latest` went back': { max: 0 },
      'nodes that ended': { max: 0 },
    },
    control: 'an asynchronous standby',
    isTimed: true,
  },
  33: {
    test: 'PostgreSQL without its synchronous standby: a waiting commit is canceled, times out, or loses its connection; sent again before and after the standby is back',
    files: ['server/src/store/postgres/connection.test.ts'],
    names: 'postgres: (a commit that|control)',
  },
  34: {
    test: 'the network to PostgreSQL: half a second away, 1 KB per second, silent, cut in the middle of an answer, refused; then it recovers',
    files: ['tests/faults/postgres-network.test.ts', 'server/src/store/postgres/connection.test.ts'],
    names: '(network:|postgres: (while the database|a network that|a connection that|connections that))',
    count: { unit: 'seconds of each', reduced: 1, full: 30 },
    bounds: { 'wrong answers': { max: 0 } },
  },
  35: {
    test: 'every PostgreSQL connection waits for a lock, 300 reads at once: those beyond the bound are rejected at once',
    files: ['server/src/store/postgres/connection.test.ts'],
    names: 'postgres: with all connections',
  },
} as const satisfies Readonly<Record<string, Row>>;
