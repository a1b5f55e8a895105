// The shapes of JSON bodies as JSON Schema. TypeScript types are derived from them, and the OpenAPI document includes them (D5, D7, D11,
// D15).

type StringSchema = {
  readonly type: 'string' | readonly ['string', 'null'];
  readonly pattern?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
};
type IntegerSchema = {
  readonly type: 'integer';
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
};
type NumberSchema = {
  readonly type: 'number' | readonly ['number', 'null'];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
};
type BooleanSchema = { readonly type: 'boolean'; readonly description?: string };
type RefSchema = { readonly $ref: string };
type ArraySchema = { readonly type: 'array'; readonly items: BodySchema; readonly description?: string };
type ObjectSchema = {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, BodySchema>>;
  readonly required: readonly string[];
  readonly additionalProperties?: boolean | BodySchema;
  readonly description?: string;
};
type NullableSchema = { readonly oneOf: readonly [BodySchema, { readonly type: 'null' }] };

export type BodySchema =
  | StringSchema
  | IntegerSchema
  | NumberSchema
  | BooleanSchema
  | RefSchema
  | ArraySchema
  | ObjectSchema
  | NullableSchema;

const hexPattern = (bytes: number) => `^0x[0-9a-f]{${bytes * 2}}$`;

const feedId = { type: 'string', pattern: hexPattern(32), description: 'Stream identifier, lower-case hex.' } as const;
const seconds = (description: string) =>
  ({ type: 'integer', minimum: 0, maximum: 4_294_967_295, description }) as const;
const text = { type: 'string' } as const;
const date = { type: 'string', format: 'date-time' } as const;
const nullableDate = { type: ['string', 'null'], format: 'date-time' } as const;
const exactInteger = {
  type: 'string',
  pattern: '^-?[0-9]+$',
  description: 'An exact integer with 18 decimals.',
} as const;
const anyObject = { type: 'object', properties: {}, required: [], additionalProperties: true } as const;
const missReason = {
  type: 'string',
  enum: ['not_yet', 'gap', 'before_first', 'no_reports', 'damaged'],
  description:
    'Why there is no report: after the newest, in a gap, before the oldest, the stream has none, or the report is damaged in the store.',
} as const;

/** Every named body shape. */
export const bodies = {
  Report: {
    type: 'object',
    properties: {
      feedID: feedId,
      validFromTimestamp: seconds('Earliest second to which the price applies.'),
      observationsTimestamp: seconds('Latest second to which the price applies.'),
      fullReport: { type: 'string', pattern: '^0x(?:[0-9a-f]{2})+$', description: 'Context, body and signatures.' },
    },
    required: ['feedID', 'validFromTimestamp', 'observationsTimestamp', 'fullReport'],
    additionalProperties: false,
  },
  OneReport: {
    type: 'object',
    properties: { report: { $ref: '#/components/schemas/Report' } },
    required: ['report'],
    additionalProperties: false,
  },
  Reports: {
    type: 'object',
    properties: { reports: { type: 'array', items: { $ref: '#/components/schemas/Report' } } },
    required: ['reports'],
    additionalProperties: false,
  },
  MissingReport: {
    type: 'object',
    properties: { feedID: feedId, reason: missReason },
    required: ['feedID', 'reason'],
    additionalProperties: false,
  },
  PartialReports: {
    type: 'object',
    properties: {
      reports: { type: 'array', items: { $ref: '#/components/schemas/Report' } },
      missing: {
        type: 'array',
        items: { $ref: '#/components/schemas/MissingReport' },
        description: 'Present when the request has missing=true.',
      },
    },
    required: ['reports'],
    additionalProperties: false,
  },
  Window: {
    type: 'object',
    properties: {
      validFromTimestamp: seconds('Earliest second of the report.'),
      observationsTimestamp: seconds('Latest second of the report.'),
    },
    required: ['validFromTimestamp', 'observationsTimestamp'],
    additionalProperties: false,
  },
  Error: {
    type: 'object',
    properties: { error: text, message: text, code: text, requestId: text },
    required: ['error', 'message', 'code', 'requestId'],
    additionalProperties: true,
  },
  ReportMiss: {
    type: 'object',
    properties: {
      error: text,
      message: text,
      code: { type: 'string', enum: ['report_not_found'] },
      requestId: text,
      reason: missReason,
      previous: { oneOf: [{ $ref: '#/components/schemas/Window' }, { type: 'null' }] },
      next: { oneOf: [{ $ref: '#/components/schemas/Window' }, { type: 'null' }] },
    },
    required: ['error', 'message', 'code', 'requestId', 'reason', 'previous', 'next'],
    additionalProperties: true,
  },
  CatalogEntry: {
    type: 'object',
    properties: {
      feedId,
      name: text,
      assetName: text,
      baseAsset: text,
      quoteAsset: text,
      assetClass: text,
      feedType: text,
      attributeType: text,
      marketHours: text,
      schemaVersion: { type: 'string', pattern: '^V[0-9]+$' },
      serviceLevel: text,
      networkType: { type: 'string', enum: ['mainnet', 'testnet'] },
      status: { type: 'string', enum: ['testing', 'live', 'decommissioned'] },
      createdAt: date,
      expectedDecommissionAt: nullableDate,
      decommissionedAt: nullableDate,
    },
    required: [
      'feedId',
      'name',
      'assetName',
      'baseAsset',
      'quoteAsset',
      'assetClass',
      'feedType',
      'attributeType',
      'marketHours',
      'schemaVersion',
      'serviceLevel',
      'networkType',
      'status',
      'createdAt',
      'expectedDecommissionAt',
      'decommissionedAt',
    ],
    additionalProperties: false,
  },
  Catalog: {
    type: 'object',
    properties: { feeds: { type: 'array', items: { $ref: '#/components/schemas/CatalogEntry' } } },
    required: ['feeds'],
    additionalProperties: false,
  },
  Feed: { type: 'object', properties: { feedID: feedId }, required: ['feedID'], additionalProperties: false },
  Feeds: {
    type: 'object',
    properties: { feeds: { type: 'array', items: { $ref: '#/components/schemas/Feed' } } },
    required: ['feeds'],
    additionalProperties: false,
  },
  SignerSet: {
    type: 'object',
    properties: {
      f: { type: 'integer', minimum: 0, description: 'f + 1 signatures make a quorum.' },
      addresses: { type: 'array', items: { type: 'string', pattern: hexPattern(20) } },
    },
    required: ['f', 'addresses'],
    additionalProperties: false,
  },
  SignerSets: {
    type: 'object',
    properties: {},
    required: [],
    additionalProperties: { $ref: '#/components/schemas/SignerSet' },
    description: 'Config digest → signer set.',
  },
  Coverage: {
    type: 'object',
    properties: {
      from: seconds('First second of the range.'),
      to: seconds('Last second of the range.'),
      reports: { type: 'integer', minimum: 0, description: 'Reports that are valid in the range.' },
      coveredSeconds: { type: 'integer', minimum: 0, description: 'Seconds for which a report is valid.' },
      completeness: {
        type: 'number',
        minimum: 0,
        maximum: 1,
        description: 'Covered seconds divided by the seconds of the range.',
      },
      gapCount: { type: 'integer', minimum: 0 },
      gaps: { type: 'array', items: { $ref: '#/components/schemas/Gap' }, description: 'The first 1,000.' },
      medianIntervalMs: {
        type: ['number', 'null'],
        description: 'Between successive observations; null with fewer than two.',
      },
    },
    required: ['from', 'to', 'reports', 'coveredSeconds', 'completeness', 'gapCount', 'gaps', 'medianIntervalMs'],
    additionalProperties: false,
  },
  Gap: {
    type: 'object',
    properties: {
      from: seconds('First second without a report.'),
      to: seconds('Last second without a report.'),
      seconds: { type: 'integer', minimum: 1 },
    },
    required: ['from', 'to', 'seconds'],
    additionalProperties: false,
  },
  Candle: {
    type: 'object',
    properties: {
      timestamp: seconds('First second of the bucket.'),
      open: exactInteger,
      high: exactInteger,
      low: exactInteger,
      close: exactInteger,
      reports: { type: 'integer', minimum: 1 },
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
  ServerTime: {
    type: 'object',
    properties: { serverTimeMs: { type: 'integer', minimum: 0 } },
    required: ['serverTimeMs'],
    additionalProperties: false,
  },
  Status: {
    type: 'object',
    properties: {
      ready: { type: 'boolean', description: 'Whether the server is ready; reasons says why not.' },
      reasons: { type: 'array', items: text, description: 'Empty when ready.' },
      network: { type: 'string', enum: ['mainnet', 'testnet'] },
      version: { ...text, description: 'Release of the server.' },
      serverTimeMs: { type: 'integer', minimum: 0, description: 'When this was computed, up to a second ago.' },
      uptimeSeconds: { type: 'integer', minimum: 0, description: 'Since the server started.' },
      ingestLagSeconds: {
        type: ['number', 'null'],
        description: 'Age of the newest observation of all streams; null before the first.',
      },
      streams: { $ref: '#/components/schemas/StreamCounts' },
      sandbox: { $ref: '#/components/schemas/SandboxStatus' },
    },
    required: [
      'ready',
      'reasons',
      'network',
      'version',
      'serverTimeMs',
      'uptimeSeconds',
      'ingestLagSeconds',
      'streams',
    ],
    additionalProperties: false,
  },
  StreamCounts: {
    type: 'object',
    properties: {
      total: { type: 'integer', minimum: 0, description: 'Public streams of the catalog, in any status.' },
      live: { type: 'integer', minimum: 0, description: 'Streams that are live.' },
      behind: { type: 'integer', minimum: 0, description: 'Live streams without an observation in the last minute.' },
      behindFeedIDs: { type: 'array', items: feedId, description: 'The first 20 of them.' },
    },
    required: ['total', 'live', 'behind', 'behindFeedIDs'],
    additionalProperties: false,
  },
  SandboxStatus: {
    type: 'object',
    description: 'Of a sandbox only: its time, which everything about reports follows, and what is set to fail.',
    properties: {
      timeMs: { type: 'integer', minimum: 0, description: 'Sandbox time.' },
      speed: { type: 'number', minimum: 0, description: 'Sandbox seconds per second.' },
      paused: { type: 'boolean', description: 'Whether time is paused.' },
      faults: { type: 'array', items: text, description: 'Active faults, the first 20.' },
    },
    required: ['timeMs', 'speed', 'paused', 'faults'],
    additionalProperties: false,
  },
  OpenApi: {
    type: 'object',
    properties: { openapi: { type: 'string', pattern: '^3\\.1\\.' }, info: anyObject, paths: anyObject },
    required: ['openapi', 'info', 'paths'],
    additionalProperties: true,
    description: 'An OpenAPI 3.1 document.',
  },
} as const satisfies Record<string, ObjectSchema>;

export type BodyName = keyof typeof bodies;

type FromSchema<S> = S extends { $ref: `#/components/schemas/${infer N extends BodyName}` }
  ? Body<N>
  : S extends { oneOf: readonly [infer A, { type: 'null' }] }
    ? FromSchema<A> | null
    : S extends { enum: readonly (infer E)[] }
      ? E
      : S extends { type: 'string' }
        ? string
        : S extends { type: readonly ['string', 'null'] }
          ? string | null
          : S extends { type: 'integer' | 'number' }
            ? number
            : S extends { type: 'boolean' }
              ? boolean
              : S extends { type: readonly ['number', 'null'] }
                ? number | null
                : S extends { type: 'array'; items: infer I }
                  ? readonly FromSchema<I>[]
                  : S extends { properties: infer P; required: readonly (infer R)[]; additionalProperties: infer A }
                    ? { readonly [K in keyof P as K extends R ? K : never]: FromSchema<P[K]> } & {
                        readonly [K in keyof P as K extends R ? never : K]?: FromSchema<P[K]>;
                      } & (A extends object ? Readonly<Record<string, FromSchema<A>>> : unknown)
                    : never;

/** The TypeScript type of a named body. */
export type Body<N extends BodyName> = FromSchema<(typeof bodies)[N]>;
