// The bodies of answers about a time range: coverage and candles.
import { count, exactInteger, feedId, type ObjectSchema, seconds } from './body-schemas.ts';

export const rangeBodies = {
  Coverage: {
    type: 'object',
    properties: {
      from: seconds('First second of the range.'),
      to: seconds('Last second of the range.', 1_763_203_599),
      reports: count('Reports that are valid in the range.', 3_540),
      coveredSeconds: count('Seconds for which a report is valid.', 3_540),
      completeness: {
        type: 'number',
        minimum: 0,
        maximum: 1,
        description: 'Covered seconds divided by the seconds of the range.',
        examples: [0.983],
      },
      gapCount: count('Number of gaps.', 1),
      gaps: { type: 'array', items: { $ref: '#/components/schemas/Gap' }, description: 'The first 1,000.' },
      medianIntervalMs: {
        type: ['number', 'null'],
        description: 'Between successive observations; null with fewer than two.',
        examples: [1_000],
      },
    },
    required: ['from', 'to', 'reports', 'coveredSeconds', 'completeness', 'gapCount', 'gaps', 'medianIntervalMs'],
    additionalProperties: false,
  },
  CoverageMany: {
    type: 'object',
    properties: {
      streams: {
        type: 'array',
        items: { $ref: '#/components/schemas/StreamCoverage' },
        description: 'One entry for each feed ID, in the order asked for.',
      },
    },
    required: ['streams'],
    additionalProperties: false,
  },
  StreamCoverage: {
    type: 'object',
    properties: {
      feedID: feedId,
      from: seconds(
        'First measured second: that of the stream’s first report, if it is in the range; absent if it has none.',
      ),
      coveredSeconds: count('Seconds for which a report is valid.', 3_540),
      gapCount: count('Number of gaps.', 1),
      longestGap: { oneOf: [{ $ref: '#/components/schemas/Gap' }, { type: 'null' }] },
      newestMs: count('The newest observation, in milliseconds; absent if there is none.', 1_763_203_599_000),
      hours: {
        type: 'array',
        items: { $ref: '#/components/schemas/HourCoverage' },
        description: 'The measured hours, oldest first.',
      },
    },
    required: ['feedID', 'coveredSeconds', 'gapCount', 'longestGap', 'hours'],
    additionalProperties: false,
  },
  HourCoverage: {
    type: 'object',
    properties: {
      timestamp: seconds('First second of the hour.', 1_763_197_200),
      seconds: {
        type: 'integer',
        minimum: 1,
        maximum: 3_600,
        description: 'Measured seconds of the hour.',
        examples: [3_600],
      },
      coveredSeconds: {
        type: 'integer',
        minimum: 0,
        maximum: 3_600,
        description: 'Seconds of them for which a report is valid.',
        examples: [3_540],
      },
    },
    required: ['timestamp', 'seconds', 'coveredSeconds'],
    additionalProperties: false,
  },
  Gap: {
    type: 'object',
    properties: {
      from: seconds('First second without a report.', 1_763_201_000),
      to: seconds('Last second without a report.', 1_763_201_059),
      seconds: { type: 'integer', minimum: 1, description: 'Length of the gap.', examples: [60] },
    },
    required: ['from', 'to', 'seconds'],
    additionalProperties: false,
  },
  Candle: {
    type: 'object',
    properties: {
      timestamp: seconds('First second of the bucket.', 1_763_199_960),
      open: exactInteger,
      high: exactInteger,
      low: exactInteger,
      close: exactInteger,
      reports: { type: 'integer', minimum: 1, description: 'Reports in the bucket.', examples: [60] },
    },
    required: ['timestamp', 'open', 'high', 'low', 'close', 'reports'],
    additionalProperties: false,
  },
  Candles: {
    type: 'object',
    properties: { candles: { type: 'array', items: { $ref: '#/components/schemas/Candle' } } },
    required: ['candles'],
    additionalProperties: false,
  },
  CandlesMany: {
    type: 'object',
    properties: {
      streams: {
        type: 'array',
        items: { $ref: '#/components/schemas/StreamCandles' },
        description: 'One entry for each feed ID, in the order asked for.',
      },
    },
    required: ['streams'],
    additionalProperties: false,
  },
  StreamCandles: {
    type: 'object',
    properties: {
      feedID: feedId,
      candles: { type: 'array', items: { $ref: '#/components/schemas/Candle' } },
    },
    required: ['feedID', 'candles'],
    additionalProperties: false,
  },
} as const satisfies Record<string, ObjectSchema>;
