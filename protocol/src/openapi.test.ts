import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect, test } from 'vitest';
import { formOf, type Parameter, type ParameterKind, type Route, type RouteName, routes } from './api.ts';
import { type Body, type BodyName, bodies } from './bodies.ts';
import { parseStream, toCatalogEntry } from './catalog.ts';
import { ApiError, type ErrorCode, errorOf, errorTable, toErrorJson } from './errors.ts';
import { type FeedId, parseFeedId } from './feed-id.ts';
import * as frontDoor from './index.ts';
import { createOpenApi, type OpenApiOperation, type OpenApiResponse } from './openapi.ts';
import { parseQuery } from './query.ts';
import { toReportJson } from './report-json.ts';
import { parseSignerSets, toSignerSetsJson } from './report-signature.ts';
import discoveryVectors from './vectors/discovery.json' with { type: 'json' };
import reportVectors from './vectors/reports.json' with { type: 'json' };
import signingVectors from './vectors/request-signing.json' with { type: 'json' };
import verificationVectors from './vectors/verification.json' with { type: 'json' };

const root = fileURLToPath(new URL('../..', import.meta.url));
const document = createOpenApi();
const rows = Object.entries<Route>(routes);
const never = (): never => expect.unreachable();

const ajv = new Ajv2020({ allowUnionTypes: true, strictTuples: false });
addFormats.default(ajv);
ajv.addFormat('int64', { type: 'number', validate: Number.isSafeInteger });
ajv.addKeyword('components');
ajv.addSchema({ $id: 'openapi', components: document.components }, 'openapi', false, false);
const validatorOf = (name: string) => ajv.compile({ $ref: `openapi#/components/schemas/${name}` });

type DocumentedOperation = { readonly path: string; readonly method: string; readonly operation: OpenApiOperation };
const operations: readonly DocumentedOperation[] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
);
const operationOf = (route: Route): OpenApiOperation =>
  operations.find(({ path, method }) => path === route.path && method === route.method.toLowerCase())
    ?.operation as OpenApiOperation; // a test below holds that every route has one

test('openapi: docs/openapi.json is generated from the tables', async () => {
  const format = ['format', '--stdin-file-path=docs/openapi.json'];
  const input = JSON.stringify(document);
  const text = execFileSync('node_modules/.bin/biome', format, { cwd: root, encoding: 'utf8', input });
  const hint = 'Out of date. To write it again: npx vitest run protocol/src/openapi -u';
  await expect(text, hint).toMatchFileSnapshot('../../docs/openapi.json');
});

test('openapi: equal tables give equal text', () => {
  expect(JSON.stringify(createOpenApi())).toBe(JSON.stringify(document));
});

test('openapi: every reference resolves', () => {
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, path]) => path as string); // the group always matches
  expect(references.length).toBeGreaterThan(100);
  for (const path of new Set(references)) {
    const target = path.split('/').reduce<unknown>((at, key) => (at as Record<string, unknown>)?.[key], document); // a path leads through objects
    expect(target, path).toBeTypeOf('object');
  }
});

test('openapi: every shared part is used', () => {
  const text = JSON.stringify(document);
  for (const [kind, parts] of Object.entries(document.components).filter(([name]) => name !== 'securitySchemes')) {
    for (const name of Object.keys(parts)) expect(text).toContain(`"#/components/${kind}/${name}"`);
  }
});

test('openapi: paths and methods are those of the route table, with HEAD for every GET over http', () => {
  const expected = rows.flatMap(([, { method, path, transport }]) =>
    method === 'GET' && transport === 'http' ? [`get ${path}`, `head ${path}`] : [`${method.toLowerCase()} ${path}`],
  );
  expect(operations.map(({ method, path }) => `${method} ${path}`)).toEqual([...new Set(expected)]);
});

test('openapi: every operation has a unique ID, a tag that exists, and a summary', () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(new Set(ids).size).toBe(ids.length);
  const named = rows.filter(([, route]) => formOf(route) === undefined).map(([name]) => name);
  expect(ids).toEqual(expect.arrayContaining(named));
  for (const { operation } of operations) {
    expect(document.tags.map(({ name }) => name)).toEqual(expect.arrayContaining([...operation.tags]));
    expect(operation.summary).toMatch(/\.$/);
  }
});

test('openapi: the query parameters are those of the table and no others', () => {
  for (const { path, operation } of operations) {
    const forms = rows.filter(([, route]) => route.path === path).map(([, route]) => route.query);
    const given = operation.parameters.filter((parameter) => parameter.in === 'query');
    const table: Readonly<Record<string, Parameter>> = Object.assign({}, ...forms);
    expect(given.map(({ name }) => name)).toEqual(Object.keys(table));
    for (const { name, required, description, schema } of given) {
      const parameter = table[name];
      expect(required).toBe(forms.every((query) => query[name]?.required === true));
      expect(description.startsWith(parameter?.about ?? '?')).toBe(true);
      expect(schema.default).toBe(parameter?.default);
    }
  }
});

test('openapi: request headers are listed where they have an effect', () => {
  for (const { operation } of operations) {
    const given = operation.parameters.filter((parameter) => parameter.in === 'header').map(({ name }) => name);
    const expected = operation['x-transport'] === 'websocket' ? ['X-Cll-Origin'] : [];
    if (operation.responses[304] !== undefined) expected.push('If-None-Match');
    if (operation.operationId.startsWith('reportStream')) expected.push('Last-Event-ID');
    expect(given).toEqual(expected);
  }
});

const hex = (digits: string) => `0x${digits.repeat(64)}`;
const samples: Readonly<Record<ParameterKind, readonly string[]>> = {
  feedId: [hex('a'), hex('A'), hex('g'), `0X${'a'.repeat(64)}`, '0x', 'a'.repeat(66), ''],
  feedIds: [hex('a'), `${hex('a')},${hex('b')}`, `${hex('a')},`, `,${hex('a')}`, `${hex('a')}, ${hex('b')}`],
  seconds: ['0', '1763200000', '4294967295', '4294967296', '-1', '1.5', 'now', '1763200000123', ''],
  limit: ['1', '10', '1000', '0', '1001', '-1', '1.5', 'all', ''],
  resolution: ['60', '300', '3600', '61', '0', '1m', ''],
  names: ['Crypto', 'Tokenized Asset', 'a,b', 'a,,b', ',', ''],
  day: ['2025-01-31', '2024-02-29', '2025-02-30', '2025-1-1', '2025-01-31T00:00:00Z', ''],
  boolean: ['true', 'false', 'TRUE', '1', ''],
};

/** The value that a client would have put into the query to send this text. */
const sentAs = (raw: string, type: string): unknown => {
  if (type === 'array') return raw.split(',');
  if (type === 'integer' && /^-?[0-9.]+$/.test(raw)) return Number(raw);
  return type === 'boolean' && (raw === 'true' || raw === 'false') ? raw === 'true' : raw;
};

test('openapi: the schema of an argument accepts exactly what its parser accepts', () => {
  const entries = Object.entries<Route>(routes) as [RouteName, Route][]; // its own keys
  for (const [name, route] of entries) {
    const others = Object.entries(route.query).filter(([, { required }]) => required);
    for (const [argument, { kind }] of Object.entries(route.query)) {
      const { schema } = operationOf(route).parameters.find((parameter) => parameter.name === argument) ?? never();
      const validate = ajv.compile(schema);
      for (const raw of samples[kind]) {
        const query = new URLSearchParams(others.map(([key, row]) => [key, samples[row.kind][0] ?? never()]));
        query.set(argument, raw);
        expect(validate(sentAs(raw, schema.type)), `${argument}=${raw}`).toBe(parses(name, query.toString()));
      }
    }
  }
});

const parses = (route: RouteName, raw: string): boolean => {
  try {
    parseQuery(route, raw);
    return true;
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    return false;
  }
};

test('openapi: a signed request has three header keys, discovery may go without, the extras have none', () => {
  expect(Object.values(document.components.securitySchemes).map((scheme) => `${scheme.in} ${scheme.name}`)).toEqual([
    'header Authorization',
    'header X-Authorization-Timestamp',
    'header X-Authorization-Signature-SHA256',
  ]);
  const all = { userId: [], timestamp: [], signature: [] };
  expect(operationOf(routes.reportAt).security).toEqual([all]);
  expect(operationOf(routes.discovery).security).toEqual([{}, all]);
  expect(operationOf(routes.time).security).toEqual([]);
});

const bodiesOf = ({ content }: OpenApiResponse): readonly (string | undefined)[] => {
  const schema = content?.['application/json']?.schema;
  if (schema === undefined) return [undefined];
  return ('oneOf' in schema ? schema.oneOf : [schema]).map(({ $ref }) => $ref.split('/').at(-1));
};

test('openapi: every answer of the table is there with its body, and HEAD has none', () => {
  for (const [, route] of rows) {
    for (const [status, body] of Object.entries(route.answers)) {
      expect(bodiesOf(operationOf(route).responses[status] as OpenApiResponse)).toContain(body ?? undefined); // the test expects that it is there
    }
  }
  for (const { method, operation } of operations.filter((found) => found.method === 'head')) {
    for (const response of Object.values(operation.responses)) {
      expect(response.content ?? response.$ref, method).toBeUndefined();
    }
  }
});

test('openapi: a path with two forms is one operation with optional arguments and the responses of both', () => {
  const { parameters, responses, description } = operationOf(routes.reportLatestMany);
  expect(parameters.map(({ name, required }) => [name, required])).toEqual([
    ['feedID', false],
    ['If-None-Match', false],
    ['feedIDs', false],
    ['missing', false],
  ]);
  expect(bodiesOf(responses[200] ?? never())).toEqual(['OneReport', 'Reports']);
  expect(bodiesOf(responses[206] ?? never())).toEqual(['PartialReports']);
  expect(responses[200]?.headers?.ETag).not.toHaveProperty('required');
  expect(responses[304]?.headers?.ETag).toEqual({ $ref: '#/components/headers/ETag' });
  expect(description).toContain('one form or of the other');
});

test('openapi: the page is HTML', () => {
  const { content } = operationOf(routes.docs).responses[200] ?? never();
  expect(content).toEqual({ 'text/html': { schema: { type: 'string' } } });
});

test('openapi: every answer is described, and errors name their codes', () => {
  const told = new Set<string>();
  for (const { path, method, operation } of operations) {
    for (const [status, { description }] of Object.entries(operation.responses)) {
      expect(description, `${method} ${path} ${status}`).not.toBe('');
      for (const [, code] of description.matchAll(/`(\w+)`/g)) {
        expect(errorTable[code as ErrorCode].status).toBe(Number(status)); // the test fails on any other
        told.add(code as string); // a code is text
      }
    }
  }
  const ofNoRoute = ['route_not_found', 'method_not_allowed'];
  expect([...told, ...ofNoRoute].sort()).toEqual(Object.keys(errorTable).sort());
  for (const code of ofNoRoute) expect(document.info.description).toContain(code);
});

test('openapi: a route lists only the codes that it can return', () => {
  const told = (route: Route, status: number) => operationOf(route).responses[status]?.description ?? '';
  expect(told(routes.time, 400)).toBe('`malformed_target`, `repeated_host`, `unexpected_body`');
  expect(told(routes.time, 401)).toBe('');
  expect(told(routes.feeds, 401)).toBe('`unauthorized`');
  expect(told(routes.reportLatest, 401)).toBe('`unauthorized`, `stream_not_accessible`');
  expect(told(routes.reportLatest, 400)).not.toContain('timestamp_out_of_bounds');
  expect(told(routes.reportBulk, 400)).toContain('timestamp_out_of_bounds');
  expect(told(routes.discovery, 400)).not.toContain('missing_argument');
  expect(told(routes.socket, 426)).toBe('`upgrade_required`');
  expect(told(routes.reportPage, 426)).toBe('');
});

test('openapi: response headers are listed where they are sent', () => {
  const on = (route: Route, status: number) => Object.keys(operationOf(route).responses[status]?.headers ?? {});
  const limited = ['X-Request-Id', 'RateLimit-Limit', 'RateLimit-Remaining', 'RateLimit-Reset'];
  expect(on(routes.time, 200)).toEqual(['X-Request-Id']);
  expect(on(routes.reportAt, 200)).toEqual([...limited, 'ETag']);
  expect(on(routes.reportLatest, 304)).toEqual([...limited, 'ETag']);
  expect(on(routes.reportPage, 200)).toEqual([...limited, 'Link', 'Sealpost-Missing']);
  expect(on(routes.reportBulk, 206)).toEqual(limited);
  expect(on(routes.origins, 200)).toContain('X-Cll-Available-Origins');
  for (const name of ['TooManyRequests', 'Unavailable'])
    expect(document.components.responses[name]?.headers).toHaveProperty('Retry-After');
  const upgrade = Object.keys(document.components.responses.UpgradeRequired?.headers ?? {});
  expect(upgrade).toEqual([...limited, 'Upgrade', 'Connection', 'Sec-WebSocket-Version']);
});

const vector = reportVectors.reports.find(({ name }) => name === 'version 3') as (typeof reportVectors.reports)[number]; // the vectors have it
const feedId: FeedId = parseFeedId(vector.decoded.feedId);
const report = toReportJson(feedId, vector.window, vector.fullReport);
const window = { validFromTimestamp: 1_763_199_999, observationsTimestamp: 1_763_200_000 };
const missing = { feedID: feedId, reason: 'gap' } as const;
const entry = toCatalogEntry(parseStream(discoveryVectors.feeds[0]));
const signerSets = toSignerSetsJson(parseSignerSets(verificationVectors.signerSets));
const gap = { from: 1_763_200_003, to: 1_763_200_005, seconds: 3 };
const streamCoverage: Body<'StreamCoverage'> = {
  feedID: feedId,
  from: 1_763_200_001,
  coveredSeconds: 7,
  gapCount: 1,
  longestGap: gap,
  newestMs: 1_763_200_010_000,
  hours: [{ timestamp: 1_763_197_200, seconds: 10, coveredSeconds: 7 }],
};
const change = {
  at: '2025-11-15T00:00:00.000000Z',
  kind: 'stream_added',
  feedID: feedId,
  name: 'ETH/USD-Streams',
} as const;
const price = '3865052126782320350000';
const candle = { timestamp: 1_763_200_020, open: price, high: price, low: price, close: price, reports: 60 };
const streams = { total: 24, live: 22, behind: 1, behindFeedIDs: [feedId] };
const miss = { reason: 'gap', previous: window, next: null } as const;

/** One answer for every body, by the renderer where there is one: a new body needs a row. */
const examples: { readonly [N in BodyName]: Body<N> } = {
  Report: report,
  OneReport: { report },
  Reports: { reports: [report, report] },
  MissingReport: missing,
  PartialReports: { reports: [report], missing: [missing] },
  Window: window,
  Error: toErrorJson(errorOf('clock_skew', { serverTimeMs: 1_763_200_000_123, skewMs: -6_000 }), 'r-1'),
  ReportMiss: toErrorJson(errorOf('report_not_found', miss), 'r-1') as unknown as Body<'ReportMiss'>, // details are untyped
  CatalogEntry: entry,
  Catalog: { feeds: [entry] },
  Feed: { feedID: feedId },
  Feeds: { feeds: [{ feedID: feedId }] },
  SignerSet: Object.values(signerSets)[0] as Body<'SignerSet'>, // the vectors have two
  SignerSets: signerSets,
  Coverage: {
    from: 1_763_200_001,
    to: 1_763_200_010,
    reports: 7,
    coveredSeconds: 7,
    completeness: 0.7,
    gapCount: 1,
    gaps: [gap],
    medianIntervalMs: 1_000,
  },
  CoverageMany: { streams: [streamCoverage] },
  StreamCoverage: streamCoverage,
  HourCoverage: streamCoverage.hours[0] as Body<'HourCoverage'>, // it has one
  Gap: gap,
  Candle: candle,
  Candles: { candles: [candle] },
  CandlesMany: { streams: [{ feedID: feedId, candles: [candle] }] },
  StreamCandles: { feedID: feedId, candles: [candle] },
  ServerTime: { serverTimeMs: 1_763_200_000_123 },
  Change: change,
  Status: {
    ready: false,
    reasons: ['ingest: the newest report is 75 s old'],
    network: 'testnet',
    version: '0.1.0',
    serverTimeMs: 1_763_200_000_123,
    uptimeSeconds: 3_600,
    ingestLagSeconds: 75.123,
    streams,
    changes: [change],
  },
  StreamCounts: streams,
  SandboxStatus: { timeMs: 1_773_412_200_000, speed: 60, paused: false, faults: ['status=503,probability=0.1'] },
  OpenApi: document as unknown as Body<'OpenApi'>, // the type of a document says more than its schema
};

const bodyNames = Object.keys(bodies) as BodyName[]; // its own keys

test.each(bodyNames)('openapi: the schema of %s accepts an answer and nothing less', (name) => {
  const validate = validatorOf(name);
  expect(validate(examples[name]), JSON.stringify(validate.errors)).toBe(true);
  for (const key of bodies[name].required) expect(validate({ ...examples[name], [key]: undefined })).toBe(false);
  for (const wrong of [null, [], 'text', 1]) expect(validate(wrong)).toBe(false);
});

test('openapi: empty lists and a 206 without missing are valid', () => {
  expect(validatorOf('Reports')({ reports: [] })).toBe(true);
  expect(validatorOf('PartialReports')({ reports: [] })).toBe(true);
  expect(validatorOf('SignerSets')({})).toBe(true);
  expect(validatorOf('Reports')({ reports: null })).toBe(false);
  expect(validatorOf('OneReport')({ report: { ...report, validFromTimestamp: '1763199999' } })).toBe(false);
});

test('openapi: every error of the table has a body that the document describes', () => {
  const validate = validatorOf('Error');
  for (const code of Object.keys(errorTable) as ErrorCode[]) // its own keys
    expect(validate(toErrorJson(errorOf(code), 'r')), code).toBe(true);
  expect(document['x-errors'].map(({ code }) => code)).toEqual(Object.keys(errorTable));
});

test('openapi: a deployment’s document has its address and limits', () => {
  const own = createOpenApi({ serverUrl: 'https://api.example/', bounds: { feedIdsMax: 7, retentionDays: 3 } });
  expect(own.servers).toEqual([{ url: 'https://api.example' }]);
  const [feedIDs, timestamp] = own.paths['/api/v1/reports/bulk']?.get?.parameters ?? [];
  expect(feedIDs?.schema.maxItems).toBe(7);
  expect(timestamp?.description).toContain('the last 3 days');
  expect(JSON.stringify(own)).not.toContain('30 days');
});

test('openapi: the package’s main entry point does not include it', () => {
  expect(frontDoor).not.toHaveProperty('createOpenApi');
});

test('openapi: every example of a schema is valid by it', () => {
  const schemas = Object.values<object>(bodies).flatMap(function within(part: unknown): readonly object[] {
    if (typeof part !== 'object' || part === null) return [];
    return [part, ...Object.values(part).flatMap(within)];
  });
  const given = schemas.filter((schema) => 'examples' in schema);
  expect(given.length).toBeGreaterThan(30);
  for (const schema of given)
    for (const example of schema.examples as readonly unknown[]) expect(ajv.compile(schema)(example)).toBe(true);
});

test('openapi: the description has the guides, with the limits of the deployment and a request that is signed right', () => {
  const { description } = createOpenApi({ bounds: { retentionDays: 3, requestsPerSecond: 7 } }).info;
  const titles = [...description.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
  expect(titles).toEqual(['Requests', 'Authentication', 'Errors', 'Rate limits', 'Time and validity', 'Live reports']);
  expect(description).toContain('7 requests per second');
  expect(description).toContain('last 3 days');
  const signed = signingVectors.cases.find(({ name }) => name === 'report at a timestamp');
  expect(description).toContain(signed?.stringToSign);
  expect(description).toContain(signed?.signature);
});
