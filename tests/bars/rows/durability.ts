// 24 to 35: what was acknowledged is kept.
import type { Row } from '../bar.ts';

export const durabilityBars = {
  24: {
    test: 'kill -9 at a random moment of each life, everything acknowledged compared byte for byte',
    files: ['tests/faults/kill.test.ts'],
    count: { unit: 'lives', reduced: 40, full: 10_000, part: 500 },
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
  32: {
    test: 'PostgreSQL under two real nodes with reads and writes: the primary killed -9 or silent, its standby promoted at once or 3 s later, every answer compared with what was sent',
    files: ['tests/faults/postgres-failover.test.ts'],
    count: { unit: 'fail-overs', reduced: 1, full: 50, part: 3 },
    bounds: {
      lost: { max: 0 },
      'wrong answers': { max: 0 },
      'times `latest` went back': { max: 0 },
      'nodes that ended': { max: 0 },
    },
    control: 'an asynchronous standby',
    isTimed: true,
  },
} as const satisfies Readonly<Record<string, Row>>;
