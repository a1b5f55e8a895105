// The OpenAPI 3.1 document, derived from the tables of routes, bodies and errors. It adds response headers and the error codes of each
// route. Its own entry point keeps it out of bundles.
import { isLive, type Parameter, type ParameterKind, type Route, routes } from './api.ts';
import { type BodyName, bodies } from './bodies.ts';
import { type ErrorCode, errorTable } from './errors.ts';
import { candleResolutions, limits } from './limits.ts';
import type {
  ApiKey,
  DocumentedBounds,
  Header,
  Headers,
  Method,
  OneOf,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  Reference,
  ValueSchema,
} from './openapi/document.ts';
import { describeApi } from './openapi/guides.ts';
import { secondsMax } from './parameters.ts';
import { withoutTrailing } from './primitives/trailing.ts';
import { authHeaders } from './request-signing.ts';

export type {
  DocumentedBounds,
  OpenApiDocument,
  OpenApiOperation,
  OpenApiParameter,
  OpenApiResponse,
  ValueSchema,
} from './openapi/document.ts';

export type OpenApiOptions = {
  /** Address of the deployment; by default, the host that serves the document. */
  readonly serverUrl?: string;
  /** The protocol's limits by default. */
  readonly bounds?: Partial<DocumentedBounds>;
};

const errorCodes = Object.keys(errorTable) as ErrorCode[]; // the table's own keys

/** The document of a deployment. Key order is fixed, so that equal tables give equal text. */
export function createOpenApi({ serverUrl, bounds }: OpenApiOptions = {}): OpenApiDocument {
  const known: DocumentedBounds = { ...limits, ...bounds };
  return {
    openapi: '3.1.0',
    info: {
      title: 'Sealpost',
      version: '1.0.0', // the major is that of the path, the minor grows with additions (D32)
      description: describeApi(known),
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: serverUrl === undefined ? '/' : withoutTrailing(serverUrl, '/') }],
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths: pathsOf(known),
    components: {
      securitySchemes,
      headers: Object.fromEntries(
        Object.entries<HeaderRow>(headerTable).map(([name, { on: _, ...header }]) => [name, header]),
      ),
      responses: sharedResponses(known),
      schemas: bodies,
    },
    'x-errors': errorCodes.map((code) => ({ code, ...errorTable[code] })),
  };
}

const tags = {
  Reports: 'Signed reports of the streams that the caller may read.',
  Catalog: 'The streams and their properties.',
  Live: 'Reports as they arrive, over WebSocket or as server-sent events.',
  Service: 'Clock, signers, status and documentation.',
} as const;

const tagOf = (route: Route): keyof typeof tags => {
  if (isLive(route)) return 'Live';
  if (route.path.includes('/reports')) return 'Reports';
  return route.path.startsWith('/api/') ? 'Catalog' : 'Service';
};

const apiKey = (name: string, description: string): ApiKey => ({ type: 'apiKey', in: 'header', name, description });

const securitySchemes: OpenApiDocument['components']['securitySchemes'] = {
  userId: apiKey(authHeaders.userId, 'The bare user ID, a UUID without a scheme word.'),
  timestamp: apiKey(authHeaders.timestamp, 'The time of signing: Unix milliseconds, 13 decimal digits.'),
  signature: apiKey(authHeaders.signature, 'HMAC-SHA256 of the request, 64 hex digits.'),
};

const allThree = Object.fromEntries(Object.keys(authHeaders).map((name) => [name, []]));
const securityOf = { required: [allThree], optional: [{}, allThree], none: [] } as const;

const asks = ({ query }: Route, ...kinds: readonly ParameterKind[]): boolean =>
  Object.values(query).some(({ kind }) => kinds.includes(kind));

type HeaderRow = Header & { readonly on: (route: Route, status: number) => boolean };

const seconds = { type: 'integer', minimum: 0 } as const;
const signs = ({ auth }: Route): boolean => auth !== 'none';
const retryAfter = (status: number): boolean => status === 429 || status === 503;

/** Every response header that clients read, and which responses have it. */
const headerTable = {
  'X-Request-Id': {
    description: 'Identifies this answer. Quote it when you report a problem.',
    required: true,
    schema: { type: 'string', minLength: 1 },
    on: () => true,
  },
  'RateLimit-Limit': {
    description:
      'Tokens per second that the account has on this route. A request costs one unless its operation says otherwise. On authenticated answers.',
    schema: seconds,
    on: signs,
  },
  'RateLimit-Remaining': { description: 'Tokens left.', schema: seconds, on: signs },
  'RateLimit-Reset': { description: 'Seconds until the bucket is full.', schema: seconds, on: signs },
  'Retry-After': {
    description: 'Seconds to wait before a retry.',
    required: true,
    schema: { type: 'integer', minimum: 1 },
    on: (_, status) => retryAfter(status),
  },
  ETag: {
    description: 'Identifies the bytes of the report; send it in If-None-Match.',
    required: true,
    schema: { type: 'string', pattern: '^"[0-9a-f]{32}(?:-gz)?"$' },
    on: ({ answers }, status) => 304 in answers && (status === 200 || status === 304),
  },
  Link: {
    description:
      'The target of the next page, relative, with rel="next"; on the last page its own target with rel="last".',
    required: true,
    schema: { type: 'string', pattern: '^</api/v1/reports/page\\?[^<>]+>; rel="(?:next|last)"$' },
    on: (route, status) => asks(route, 'limit') && status === 200,
  },
  'Sealpost-Missing': {
    description: 'Present when the page omits reports that are damaged in the store.',
    schema: { type: 'string', pattern: '^damaged$' },
    on: (route, status) => asks(route, 'limit') && status === 200,
  },
  Upgrade: {
    description: 'The protocol that the path accepts.',
    required: true,
    schema: { type: 'string', pattern: '^websocket$' },
    on: (_, status) => status === 426,
  },
  Connection: {
    description: 'Says that Upgrade is for this connection.',
    required: true,
    schema: { type: 'string', pattern: '^Upgrade\\b' },
    on: (_, status) => status === 426,
  },
  'Sec-WebSocket-Version': {
    description: 'The version of the protocol.',
    required: true,
    schema: { type: 'string', pattern: '^13$' },
    on: (_, status) => status === 426,
  },
  'X-Cll-Available-Origins': {
    description: 'The origins in braces, separated by commas; absent when none are configured.',
    schema: { type: 'string', pattern: '^\\{[^{}]+\\}$' },
    on: ({ path }, status) => path === '/' && status === 200,
  },
} as const satisfies Record<string, HeaderRow>;

const headersOf = (route: Route, status: number): Headers =>
  Object.fromEntries(
    Object.entries<HeaderRow>(headerTable)
      .filter(([, { on }]) => on(route, status))
      .map(([name]) => [name, { $ref: `#/components/headers/${name}` }]),
  );

const feedIdSchema = { type: 'string', pattern: '^0x[0-9a-fA-F]{64}$' } as const;

const schemaOf = (kind: ParameterKind, { feedIdsMax }: DocumentedBounds): ValueSchema => {
  const schemas: Record<ParameterKind, ValueSchema> = {
    feedId: feedIdSchema,
    feedIds: { type: 'array', items: feedIdSchema, minItems: 1, maxItems: feedIdsMax },
    seconds: { type: 'integer', format: 'int64', minimum: 0, maximum: secondsMax },
    limit: { type: 'integer', minimum: limits.pageLimitMin, maximum: limits.pageLimitMax },
    resolution: { type: 'integer', enum: candleResolutions },
    names: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 },
    day: { type: 'string', format: 'date', pattern: '^[0-9]{4}-[0-9]{2}-[0-9]{2}$' },
    boolean: { type: 'boolean' },
  };
  return schemas[kind];
};

/** What the schema of an argument does not say. */
const noteOf = (kind: ParameterKind, { feedIdsMax, retentionDays }: DocumentedBounds): string => {
  if (kind === 'feedIds') return ` At most ${feedIdsMax} distinct ones.`;
  if (kind === 'seconds') return ` Unix seconds, within the last ${retentionDays} days.`;
  return kind === 'day' ? ' A day in UTC.' : '';
};

const toParameter = (name: string, row: Parameter, bounds: DocumentedBounds): OpenApiParameter => {
  const schema = schemaOf(row.kind, bounds);
  return {
    name,
    in: 'query',
    required: row.required === true,
    description: row.about + noteOf(row.kind, bounds),
    ...(schema.type === 'array' && { style: 'form', explode: false }),
    schema: row.default === undefined ? schema : { ...schema, default: row.default },
  };
};

const headerParameter = (name: string, description: string): OpenApiParameter => ({
  name,
  in: 'header',
  required: false,
  description,
  schema: { type: 'string' },
});

const parametersOf = (route: Route, bounds: DocumentedBounds): readonly OpenApiParameter[] => [
  ...Object.entries(route.query).map(([name, row]) => toParameter(name, row, bounds)),
  ...(304 in route.answers ? [headerParameter('If-None-Match', 'The ETag of an earlier answer.')] : []),
  ...(isSocket(route) ? [headerParameter('X-Cll-Origin', 'One of the origins that HEAD / names.')] : []),
  ...(isEvents(route) ? [headerParameter('Last-Event-ID', 'The ID of the last event received.')] : []),
];

const isSocket = ({ transport }: Route): boolean => transport === 'websocket';
const isEvents = ({ contentType }: Route): boolean => contentType === 'text/event-stream';
const always = (): boolean => true;
const never = (): boolean => false;
const dated = (route: Route): boolean => asks(route, 'seconds');
const namesStreams = (route: Route): boolean => asks(route, 'feedId', 'feedIds');
const hasArguments = ({ query }: Route): boolean => Object.keys(query).length > 0;
const needsArguments = ({ query }: Route): boolean => Object.values(query).some(({ required }) => required === true);
const underApi = ({ path }: Route): boolean => path.startsWith('/api/');

/** Which routes can return a code. Two codes are only for unknown paths and methods. */
const answersWith: Readonly<Record<ErrorCode, (route: Route) => boolean>> = {
  malformed_target: always,
  repeated_host: always,
  unexpected_body: always,
  missing_header: signs,
  malformed_header: signs,
  repeated_header: signs,
  clock_skew: signs,
  missing_argument: needsArguments,
  malformed_argument: hasArguments,
  repeated_argument: hasArguments,
  timestamp_out_of_bounds: dated,
  unknown_origin: isSocket,
  unauthorized: signs,
  stream_not_accessible: namesStreams,
  signature_used: isLive,
  route_not_found: never,
  report_not_found: ({ answers }) => 404 in answers,
  method_not_allowed: never,
  request_timeout: always,
  upgrade_required: isSocket,
  rate_limited: always,
  too_many_failures: signs,
  too_many_sockets: isLive,
  head_too_large: always,
  internal_error: always,
  store_unavailable: underApi,
  overloaded: always,
  draining: always,
};

/** The codes that a route can return, by status in ascending order. */
const codesOf = (route: Route): readonly (readonly [number, readonly ErrorCode[]])[] => {
  const codes = errorCodes.filter((code) => answersWith[code](route));
  const statuses = [...new Set(codes.map((code) => errorTable[code].status))].sort((a, b) => a - b);
  return statuses.map((status) => [status, codes.filter((code) => errorTable[code].status === status)]);
};

const quoted = (codes: readonly string[]): string => codes.map((code) => `\`${code}\``).join(', ');

/** The shared error responses by status. */
const errorStatuses: Readonly<Record<number, { readonly name: string; readonly about: string }>> = {
  400: { name: 'BadRequest', about: 'An argument or a header is missing, malformed or repeated. Change the request.' },
  401: { name: 'Unauthorized', about: 'The signature is wrong, or the account may not read a stream.' },
  408: { name: 'RequestTimeout', about: 'The request did not arrive in time.' },
  426: { name: 'UpgradeRequired', about: 'The path accepts only WebSockets.' },
  429: { name: 'TooManyRequests', about: 'A limit is exceeded. Wait for Retry-After.' },
  431: { name: 'HeadTooLarge', about: `Request line and headers exceed ${limits.requestHeadBytesMax} bytes.` },
  500: { name: 'InternalError', about: 'An unexpected condition. Retry with back-off; report the request ID.' },
  503: { name: 'Unavailable', about: 'Temporarily unavailable. Wait for Retry-After.' },
};

const answerTexts: Readonly<Record<number, string>> = {
  101: 'The connection is now a WebSocket.',
  200: 'Success.',
  206: 'Some streams have no report; the body has the reports of the others.',
  304: 'The report matches If-None-Match.',
  404: 'No report, with the reason: `report_not_found`.',
};

const withBody = (body: BodyName | null): Pick<OpenApiResponse, 'content'> =>
  body === null ? {} : { content: { 'application/json': { schema: { $ref: `#/components/schemas/${body}` } } } };

const asText = (type: string) => ({ content: { [type]: { schema: { type: 'string' } as const } } });

const sharedResponses = ({ requestsPerSecond }: DocumentedBounds): Readonly<Record<string, OpenApiResponse>> =>
  Object.fromEntries(
    Object.entries(errorStatuses).map(([status, { name, about }]) => {
      const limited = status === '429' && requestsPerSecond > 0;
      const limit = limited ? ` The default is ${requestsPerSecond} requests per second and route.` : '';
      return [
        name,
        { description: about + limit, headers: headersOf(routes.feeds, Number(status)), ...withBody('Error') },
      ];
    }),
  );

const responsesOf = (route: Route, method: Method): OpenApiOperation['responses'] => {
  const bare = method === 'head';
  const answers = Object.entries(route.answers)
    .filter(([status]) => !bare || Number(status) < 400)
    .map(([status, body]) => {
      const description = answerTexts[Number(status)] ?? '';
      const content =
        route.contentType !== undefined && !bare ? asText(route.contentType) : withBody(bare ? null : body);
      return [status, { description, headers: headersOf(route, Number(status)), ...content }];
    });
  return Object.fromEntries([...answers, ...(bare ? bareErrors(route) : refusals(route))]);
};

const refusals = (route: Route): readonly (readonly [string, OpenApiResponse])[] =>
  codesOf(route).flatMap(([status, codes]) => {
    const shared = errorStatuses[status];
    if (shared === undefined) return []; // 404 has a body of its own among the answers
    return [[String(status), { $ref: `#/components/responses/${shared.name}`, description: quoted(codes) }]];
  });

// A response to HEAD has no body for a code, so its errors are listed by class, except those with Retry-After.
const bareErrors = (route: Route): readonly (readonly [string, OpenApiResponse])[] => {
  const statuses = codesOf(route).map(([status]) => status);
  const bare = (description: string, status: number) => ({ description, headers: headersOf(route, status) });
  const later = statuses
    .filter(retryAfter)
    .map((status) => [`${status}`, bare('Wait for Retry-After.', status)] as const);
  const classes = [4, 5].map((hundreds) => {
    const documented = statuses.filter((status) => Math.floor(status / 100) === hundreds && !retryAfter(status));
    return [`${hundreds}XX`, bare(`${documented.join(', ')}, without a body.`, hundreds * 100)] as const;
  });
  return [...later, ...classes];
};

const toOperation = (name: string, route: Route, method: Method, bounds: DocumentedBounds): OpenApiOperation => ({
  operationId: route.method === 'GET' && method === 'head' ? `${name}Head` : name,
  tags: [tagOf(route)],
  summary: route.about,
  ...(isSocket(route) && { description: 'A handshake: use a WebSocket client.', 'x-transport': 'websocket' }),
  security: securityOf[route.auth],
  parameters: parametersOf(route, bounds),
  responses: responsesOf(route, method),
});

const methodsOf = (route: Route): readonly Method[] => {
  if (route.method === 'HEAD') return ['head'];
  return isSocket(route) ? ['get'] : ['get', 'head'];
};

const pathsOf = (bounds: DocumentedBounds): OpenApiDocument['paths'] => {
  const paths: Record<string, { [M in Method]?: OpenApiOperation }> = {};
  for (const [name, route] of Object.entries<Route>(routes)) {
    for (const method of methodsOf(route)) {
      const [known, operation] = [paths[route.path]?.[method], toOperation(name, route, method, bounds)];
      const merged = known === undefined ? operation : mergeForms(known, operation);
      paths[route.path] = { ...paths[route.path], [method]: merged };
    }
  }
  return paths;
};

/**
 * Merges two forms of one path and method, of which OpenAPI allows only one (D99). Parameters of both forms stay as they are; those of only one form become optional. The name is the
 * first form's.
 */
const mergeForms = (first: OpenApiOperation, second: OpenApiOperation): OpenApiOperation => ({
  ...first,
  description: `${second.summary} Give the arguments of one form or of the other.`,
  parameters: mergeParameters(first.parameters, second.parameters),
  responses: mergeResponses(first.responses, second.responses),
});

const mergeParameters = (
  first: readonly OpenApiParameter[],
  second: readonly OpenApiParameter[],
): readonly OpenApiParameter[] => {
  const shared = new Set(first.filter(({ name }) => second.some((one) => one.name === name)).map(({ name }) => name));
  const added = second.filter(({ name }) => !shared.has(name));
  return [...first, ...added].map((one) => (shared.has(one.name) ? one : { ...one, required: false }));
};

type Responses = OpenApiOperation['responses'];

const mergeResponses = (first: Responses, second: Responses): Responses =>
  Object.fromEntries(
    [...new Set([...Object.keys(first), ...Object.keys(second)])].map((status) => {
      const [one, other] = [first[status], second[status]];
      return [status, one && other ? mergeResponse(one, other) : ((one ?? other) as OpenApiResponse)]; // one of them has the key
    }),
  );

/** A header of only one form becomes optional; the body is that of either form. */
const mergeResponse = (one: OpenApiResponse, other: OpenApiResponse): OpenApiResponse => {
  if (one.$ref !== undefined || one.headers === undefined || other.headers === undefined) return one;
  const there = other.headers;
  const headers = Object.fromEntries(
    Object.entries(one.headers).map(([name, header]) => [name, name in there ? header : optional(name)]),
  );
  const schemas = [one, other].map(({ content }) => content?.['application/json']?.schema);
  if (schemas.some((schema) => schema === undefined)) return { ...one, headers };
  const schema: OneOf = { oneOf: schemas as Reference[] }; // both were looked at, and no form is merged twice
  return { ...one, headers, content: { 'application/json': { schema } } };
};

const optional = (name: string): Header => ({
  description: `As #/components/headers/${name}; in the first form alone.`,
  schema: { type: 'string' },
});
