// Holds an answer against the OpenAPI document: path, method, status, content type, headers, body. Whatever the document does not
// allow is named. A keyword that the validator does not know stops it, so that nothing is passed over.
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import { gunzipSync } from 'node:zlib';
import {
  createOpenApi,
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiResponse,
} from '@sealpost/protocol/openapi';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Pipeline } from '../../server/src/http/pipeline.ts';

/** A request and its answer as they were on the wire; header names in lower case. */
export type Exchange = {
  readonly method: string;
  readonly target: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>> | IncomingHttpHeaders;
  readonly body: Buffer;
};

/** What an answer has that the document does not allow, or lacks; empty when all is well. */
export type OpenApiCheck = (exchange: Exchange) => readonly string[];

type Headers = NonNullable<OpenApiResponse['headers']>;
type Expected = {
  readonly headers: Headers;
  readonly content: Readonly<Record<string, { readonly schema: object }>> | undefined;
  /** The codes that an error may have; undefined for an answer that is none. */
  readonly codes: readonly string[] | undefined;
};

const everywhere = [
  'rate_limited',
  'malformed_target',
  'repeated_host',
  'unexpected_body',
  'overloaded',
  'draining',
  'internal_error',
];

/** Checks against the document of the tables, or another. */
export const createOpenApiCheck = (document: OpenApiDocument = createOpenApi()): OpenApiCheck => {
  const validatorOf = createValidators(document);
  const headerNames = Object.keys(document.components.headers);

  const checkHeaders = ({ headers }: Exchange, documented: Headers): readonly string[] =>
    headerNames.flatMap((name) => {
      const value = headers[name.toLowerCase()];
      const row = document.components.headers[name];
      if (value === undefined) return isRequired(documented[name], row) ? [`the header ${name} is missing`] : [];
      // Every answer may have one, of which only `Upgrade` is documented.
      if (documented[name] === undefined && name === 'Connection') return [];
      if (documented[name] === undefined) return [`the header ${name} is not documented here`];
      if (Array.isArray(value)) return [`the header ${name} is there more than once`];
      const validate = validatorOf(row?.schema ?? false);
      const typed = row?.schema.type === 'integer' && /^-?[0-9]+$/.test(String(value)) ? Number(value) : value;
      return validate(typed) ? [] : [`the header ${name} is ${JSON.stringify(value)}: ${explain(validate)}`];
    });

  const checkBody = (exchange: Exchange, { content, codes }: Expected): readonly string[] => {
    const body = exchange.headers['content-encoding'] === 'gzip' ? gunzipSync(exchange.body) : exchange.body;
    if (exchange.method === 'HEAD' || content === undefined)
      return body.length === 0 ? [] : [`there is a body of ${body.length} bytes where none is documented`];
    const type = String(exchange.headers['content-type'] ?? 'none').split(';', 1)[0] as string; // split gives one at least
    const media = content[type];
    if (media === undefined) return [`the content type is ${type}, documented: ${Object.keys(content).join(', ')}`];
    if (type !== 'application/json') return body.length > 0 ? [] : ['the body is empty'];
    const json = parse(body.toString());
    if (json === undefined) return ['the body is not JSON'];
    const validate = validatorOf(media.schema);
    if (!validate(json)) return [`the body is not as documented: ${explain(validate)}`];
    const { code } = json as { readonly code?: string }; // errors have one by their schema
    return codes === undefined || codes.includes(code ?? '')
      ? []
      : [`the code ${code} is not documented here, only ${codes}`];
  };

  return (exchange) => {
    const expected = findExpected(document, exchange);
    if (expected === undefined) return [`the status ${exchange.status} is not documented here`];
    const allow =
      exchange.status === 405 && exchange.headers.allow === undefined ? ['the header Allow is missing'] : [];
    return [...allow, ...checkHeaders(exchange, expected.headers), ...checkBody(exchange, expected)];
  };
};

// Told in place instead of by reference, a header may be absent.
const isRequired = (documented: Headers[string] | undefined, row: { readonly required?: true } | undefined): boolean =>
  documented !== undefined && '$ref' in documented && row?.required === true;

type Listener = Pipeline['handle'];

/** One check and what it has found so far. Wrap a listener in `watch`, or hand over exchanges; `report` throws what was found. */
export const createOpenApiWatch = (check: OpenApiCheck = createOpenApiCheck()) => {
  const found: string[] = [];
  const take = (exchange: Exchange): void => {
    const { method, target, status } = exchange;
    for (const what of check(exchange)) found.push(`${method} ${target.slice(0, 120)} → ${status}: ${what}`);
  };
  return {
    take,
    watch:
      (listener: Listener): Listener =>
      (request, response, ...rest) => {
        const { method = '', url = '' } = request;
        recordAnswer(response, (answer) => take({ method, target: url, ...answer }));
        listener(request, response, ...rest);
      },
    report: (): void => {
      if (found.length > 0)
        throw new Error(`Answers that docs/openapi.json does not allow:\n${found.splice(0).join('\n')}`);
    },
  };
};

let ofTables: OpenApiCheck | undefined; // made once: compiling the schemas takes longer than a request

/** Throws when what `fetch` got is not as documented. Reads a copy. */
export const requireDocumented = async (method: string, target: string, response: Response): Promise<void> => {
  const body = Buffer.from(await response.clone().arrayBuffer());
  const headers = { ...Object.fromEntries(response.headers), 'content-encoding': undefined }; // fetch has unpacked it
  ofTables ??= createOpenApiCheck();
  const openApi = createOpenApiWatch(ofTables);
  openApi.take({ method, target, status: response.status, headers, body });
  openApi.report();
};

const createValidators = ({ components }: OpenApiDocument): ((schema: object | false) => ValidateFunction) => {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true });
  addFormats.default(ajv);
  ajv.addFormat('int64', { type: 'number', validate: Number.isSafeInteger });
  ajv.addKeyword('components');
  ajv.addSchema({ $id: 'openapi', components }, 'openapi', false, false);
  const known = new Map<string, ValidateFunction>();
  return (schema) => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"openapi#/components/');
    const validate = known.get(text) ?? ajv.compile(JSON.parse(text));
    known.set(text, validate);
    return validate;
  };
};

const explain = ({ errors }: ValidateFunction): string =>
  (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath || '/'} ${message} ${JSON.stringify(params)}`)
    .join('; ');

/** What the document allows for this answer; undefined when it does not know the status there. */
const findExpected = (document: OpenApiDocument, { method, target, status }: Exchange): Expected | undefined => {
  const path = target.split('?', 1)[0] ?? '';
  const item = document.paths[path.startsWith('//') ? path.slice(1) : path];
  // HEAD is answered wherever GET is. Any other method is undefined here.
  const operation = item?.[method.toLowerCase() as 'get' | 'head'] ?? (method === 'HEAD' ? item?.get : undefined);
  if (operation !== undefined) return ofOperation(document, operation, status);
  const code = item === undefined ? 'route_not_found' : 'method_not_allowed';
  if (method === 'OPTIONS' && item !== undefined && status === 204) return noBody;
  return ofNoRoute(document, [code, ...everywhere], status);
};

const requestId: Headers = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } };
const noBody: Expected = { headers: requestId, content: undefined, codes: undefined };

// The document tells these in its introduction, since they belong to no operation.
const ofNoRoute = (document: OpenApiDocument, codes: readonly string[], status: number): Expected | undefined => {
  const possible = document['x-errors'].filter((row) => row.status === status && codes.includes(row.code));
  if (possible.length === 0) return undefined;
  const retry = status === 503 || status === 429 ? { 'Retry-After': { $ref: '#/components/headers/Retry-After' } } : {};
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  return { headers: { ...requestId, ...retry }, content, codes: possible.map(({ code }) => code) };
};

const ofOperation = (
  document: OpenApiDocument,
  { responses }: OpenApiOperation,
  status: number,
): Expected | undefined => {
  const told = responses[status] ?? responses[`${Math.floor(status / 100)}XX`];
  if (told === undefined) return undefined;
  const { headers = {}, content } = resolve(document, told);
  const codes = status < 400 ? undefined : [...told.description.matchAll(/`(\w+)`/g)].map(([, code]) => code as string); // the group always matches
  return { headers, content, codes };
};

const resolve = ({ components }: OpenApiDocument, response: OpenApiResponse): OpenApiResponse =>
  response.$ref === undefined
    ? response
    : (components.responses[response.$ref.split('/').at(-1) ?? ''] ?? { description: 'none' });

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

type Answer = Pick<Exchange, 'status' | 'headers' | 'body'>;

/** Notes what goes out through a response, and tells it when it is complete; an answer that was cut short is not one. */
const recordAnswer = (response: ServerResponse, tell: (answer: Answer) => void): void => {
  const chunks: Buffer[] = [];
  let headers: Record<string, string | string[]> = {};
  const { writeHead, write, end } = response;
  // biome-ignore lint/suspicious/noExplicitAny: node's overloads, passed on as they came
  const note = (chunk: any, encoding: any): void => {
    if (typeof chunk === 'string')
      chunks.push(Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8'));
    else if (chunk instanceof Uint8Array) chunks.push(Buffer.from(chunk));
  };
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const override = (name: 'writeHead' | 'write' | 'end', before: (...args: any[]) => void, original: any): void => {
    // biome-ignore lint/suspicious/noExplicitAny: as above
    (response as any)[name] = (...args: any[]) => {
      before(...args);
      return original.apply(response, args);
    };
  };
  let told = false;
  // An answer that goes out whole has head and body in one text, and no call of writeHead.
  const noteWhole = (): void => {
    const { _header: text } = response as unknown as { readonly _header: string | null }; // node's own, as the server uses it
    if (told || text === null) return;
    told = true;
    const end = text.indexOf('\r\n\r\n');
    headers = toHeaders(text.slice(0, end).split('\r\n').slice(1).flatMap(splitHeader));
    note(text.slice(end + 4), 'latin1');
  };
  const noteBody = (chunk: unknown, encoding: unknown): void => {
    noteWhole();
    note(chunk, encoding);
  };
  const noteHead = (_: unknown, ...rest: readonly unknown[]): void => {
    told = true;
    headers = toHeaders(rest.at(-1));
  };
  override('writeHead', noteHead, writeHead);
  override('write', noteBody, write);
  override('end', noteBody, end);
  response.once('finish', () => tell({ status: response.statusCode, headers, body: Buffer.concat(chunks) }));
};

const splitHeader = (line: string): readonly string[] => {
  const colon = line.indexOf(': ');
  return [line.slice(0, colon), line.slice(colon + 2)];
};

/** Headers by lower-case name, from a flat list or an object. */
const toHeaders = (given: unknown): Record<string, string | string[]> => {
  const pairs = Array.isArray(given)
    ? given.flatMap((name, i) => (i % 2 === 0 ? [[String(name).toLowerCase(), String(given[i + 1])] as const] : []))
    : Object.entries(given ?? {}).map(([name, value]) => [name.toLowerCase(), String(value)] as const);
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of pairs)
    headers[name] = headers[name] === undefined ? value : [headers[name], value].flat();
  return headers;
};
