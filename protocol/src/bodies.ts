// The shapes of JSON bodies as JSON Schema. TypeScript types are derived from them, and the OpenAPI document includes them (D5, D7, D11,
// D15).
import {
  anyObject,
  count,
  date,
  errorKeys,
  feedId,
  hexPattern,
  nullableDate,
  type ObjectSchema,
  seconds,
  text,
  textLike,
} from './body-schemas.ts';
import { rangeBodies } from './range-bodies.ts';

export type { BodySchema } from './body-schemas.ts';

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
      validFromTimestamp: seconds('Earliest second to which the price applies.', 1_763_199_999),
      observationsTimestamp: seconds('Latest second to which the price applies.'),
      fullReport: {
        type: 'string',
        pattern: '^0x(?:[0-9a-f]{2})+$',
        description: 'Context, body, maybe of an unknown schema, and signatures.',
        examples: ['0x0006f9b553e393ced311551efd30d1decedb63d76ad41737462e2cdbbdff1578'],
      },
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
      validFromTimestamp: seconds('Earliest second of the report.', 1_763_199_999),
      observationsTimestamp: seconds('Latest second of the report.'),
    },
    required: ['validFromTimestamp', 'observationsTimestamp'],
    additionalProperties: false,
  },
  Error: {
    type: 'object',
    properties: errorKeys,
    required: ['error', 'message', 'code', 'requestId'],
    additionalProperties: true,
  },
  ReportMiss: {
    type: 'object',
    properties: {
      ...errorKeys,
      code: { type: 'string', enum: ['report_not_found'] },
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
      name: textLike('ETH/USD-Streams-CexPrice', 'Unique in the catalog.'),
      assetName: textLike('Ether', 'Full name of the asset.'),
      baseAsset: textLike('ETH', 'What is priced.'),
      quoteAsset: textLike('USD', 'What it is priced in.'),
      assetClass: textLike('Crypto', 'Broad asset category.'),
      feedType: textLike('Crypto', 'Stream category.'),
      attributeType: textLike('CexPrice', 'Kind of data reported.'),
      marketHours: textLike('24/7', 'When the market is open.'),
      schemaVersion: {
        type: 'string',
        pattern: '^V[0-9]+$',
        description: 'Version of the report schema.',
        examples: ['V3'],
      },
      serviceLevel: textLike('high', 'Service level of the stream.'),
      networkType: {
        type: 'string',
        enum: ['mainnet', 'testnet'],
        description: 'Type of the network that serves the stream.',
      },
      status: {
        type: 'string',
        enum: ['testing', 'live', 'decommissioned'],
        description: 'Changes in this order, and never back.',
        examples: ['live'],
      },
      createdAt: date('When the stream was added.', '2025-01-10T00:00:00.000000Z'),
      expectedDecommissionAt: nullableDate('When it is scheduled to end; null if it is not.'),
      decommissionedAt: nullableDate('When it ended; null before.'),
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
      f: count('f + 1 signatures make a quorum.', 1),
      addresses: {
        type: 'array',
        items: {
          type: 'string',
          pattern: hexPattern(20),
          examples: ['0x7e5f4552091a69125d5dfcb7b8c2659029395bdf'],
        },
        description: 'Addresses of the signers, lower-case hex.',
      },
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
  ...rangeBodies,
  ServerTime: {
    type: 'object',
    properties: { serverTimeMs: count('Unix milliseconds.', 1_763_200_000_123) },
    required: ['serverTimeMs'],
    additionalProperties: false,
  },
  Status: {
    type: 'object',
    properties: {
      ready: { type: 'boolean', description: 'Whether the server is ready; reasons says why not.' },
      reasons: { type: 'array', items: text, description: 'Empty when ready.' },
      network: { type: 'string', enum: ['mainnet', 'testnet'], description: 'Type of the network.' },
      version: textLike('0.1.0', 'Release of the server.'),
      serverTimeMs: count('When this was computed, up to a second ago.', 1_763_200_000_123),
      uptimeSeconds: count('Since the server started.', 3_600),
      ingestLagSeconds: {
        type: ['number', 'null'],
        description: 'Age of the newest observation of all streams; null before the first.',
        examples: [0.8],
      },
      streams: { $ref: '#/components/schemas/StreamCounts' },
      changes: {
        type: 'array',
        items: { $ref: '#/components/schemas/Change' },
        description:
          'Recent changes of public streams and signer sets, and ends that are expected within three months; the 10 nearest of each kind, latest first.',
      },
      sandbox: { $ref: '#/components/schemas/SandboxStatus' },
      historyLoaded: {
        type: 'number',
        minimum: 0,
        maximum: 1,
        description: 'Of a demo only, while it loads simulated history: the share that is stored.',
      },
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
      'changes',
    ],
    additionalProperties: false,
  },
  Change: {
    type: 'object',
    properties: {
      at: date('When it happened or is expected.', '2025-11-15T00:00:00.000000Z'),
      kind: {
        type: 'string',
        enum: [
          'stream_added',
          'decommission_expected',
          'stream_decommissioned',
          'signer_set_added',
          'signer_set_retired',
        ],
        description: 'What changed.',
      },
      feedID: feedId,
      name: textLike('ETH/USD-Streams', 'Name of the stream.'),
      configDigest: textLike(
        '0x0009c1a4e5f7b2d3c6a8901b2c3d4e5f60718293a4b5c6d7e8f9012a3b4c5d6e',
        'Config digest of the signer set.',
      ),
    },
    required: ['at', 'kind'],
    additionalProperties: false,
  },
  StreamCounts: {
    type: 'object',
    properties: {
      total: count('Public streams of the catalog, in any status.', 24),
      live: count('Streams that are live.', 22),
      behind: count('Live streams without an observation in the last minute.', 0),
      behindFeedIDs: { type: 'array', items: feedId, description: 'The first 20 of them.' },
    },
    required: ['total', 'live', 'behind', 'behindFeedIDs'],
    additionalProperties: false,
  },
  SandboxStatus: {
    type: 'object',
    description: 'Of a sandbox only: its time, which everything about reports follows, and what is set to fail.',
    properties: {
      timeMs: count('Sandbox time.', 1_773_412_200_000),
      speed: { type: 'number', minimum: 0, description: 'Sandbox seconds per second.', examples: [1] },
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
