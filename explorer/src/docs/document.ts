// The OpenAPI document as the page shows it: guides, operations by group, answers with their headers, error codes.
import type { OpenApiDocument, OpenApiOperation, OpenApiParameter, OpenApiResponse } from '@sealpost/protocol/openapi';

/** A JSON Schema of the document, whose keys are all optional here. */
export type DocsSchema = {
  readonly type?: string | readonly string[];
  readonly $ref?: string;
  readonly items?: DocsSchema;
  readonly oneOf?: readonly DocsSchema[];
  readonly enum?: readonly (string | number)[];
  readonly examples?: readonly unknown[];
  readonly default?: unknown;
  readonly format?: string;
  readonly pattern?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, DocsSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | DocsSchema;
} & { readonly [K in 'minimum' | 'maximum' | 'minItems' | 'maxItems']?: number };

export type DocsSchemas = Readonly<Record<string, DocsSchema>>;

export type DocsAnswer = {
  readonly status: string;
  readonly about: string;
  readonly contentType: string | undefined;
  readonly schema: DocsSchema | undefined;
  readonly headers: readonly { readonly name: string; readonly about: string }[];
};

export type DocsRefusal = { readonly status: string; readonly about: string; readonly codes: readonly string[] };

export type DocsOperation = {
  /** Its operation ID, which is also its anchor. */
  readonly id: string;
  readonly method: 'GET' | 'HEAD';
  readonly path: string;
  readonly summary: string;
  readonly description: string | undefined;
  readonly auth: 'required' | 'optional' | 'none';
  readonly transport: 'http' | 'websocket' | 'events';
  /** Whether the path of a GET also answers HEAD. */
  readonly hasHead: boolean;
  readonly parameters: readonly OpenApiParameter[];
  readonly answers: readonly DocsAnswer[];
  readonly refusals: readonly DocsRefusal[];
};

/** A section of the document's description, in Markdown. */
export type DocsGuide = { readonly id: string; readonly title: string; readonly text: string };

export type DocsGroup = {
  readonly id: string;
  readonly title: string;
  readonly about: string;
  readonly operations: readonly DocsOperation[];
};

export type DocsError = OpenApiDocument['x-errors'][number];

export type ApiDocs = {
  readonly version: string;
  readonly lead: string;
  readonly guides: readonly DocsGuide[];
  readonly groups: readonly DocsGroup[];
  readonly errors: readonly DocsError[];
  readonly schemas: DocsSchemas;
};

/** The anchor of an error code. */
export const errorAnchor = (code: string): string => `error-${code}`;

export function readDocument(document: OpenApiDocument): ApiDocs {
  const { lead, guides } = readGuides(document.info.description);
  const operations = Object.entries(document.paths).flatMap(([path, item]) => {
    const operation = item.get ?? item.head;
    return operation === undefined ? [] : [{ tags: operation.tags, operation: toOperation(document, path, item) }];
  });
  return {
    version: document.info.version,
    lead,
    guides,
    groups: document.tags.map(({ name, description }) => ({
      id: `group-${slug(name)}`,
      title: name,
      about: description,
      operations: operations.filter(({ tags }) => tags.includes(name)).map(({ operation }) => operation),
    })),
    errors: document['x-errors'],
    schemas: document.components.schemas as DocsSchemas, // read key by key, none assumed
  };
}

const slug = (title: string): string => title.toLowerCase().replace(/[^a-z0-9]+/g, '-');

/** The description has a lead, then a guide under each heading. */
const readGuides = (description: string): Pick<ApiDocs, 'lead' | 'guides'> => {
  const [lead = '', ...sections] = description.split(/^## /m);
  const guides = sections.map((section) => {
    const end = section.indexOf('\n');
    const title = section.slice(0, end === -1 ? undefined : end).trim();
    return { id: slug(title), title, text: end === -1 ? '' : section.slice(end).trim() };
  });
  return { lead: lead.trim(), guides };
};

const authOf = ({ security }: OpenApiOperation): DocsOperation['auth'] => {
  if (security.length === 0) return 'none';
  return security.some((keys) => Object.keys(keys).length === 0) ? 'optional' : 'required';
};

const transportOf = (operation: OpenApiOperation): DocsOperation['transport'] => {
  if (operation['x-transport'] === 'websocket') return 'websocket';
  return operation.responses[200]?.content?.['text/event-stream'] === undefined ? 'http' : 'events';
};

const toOperation = (
  document: OpenApiDocument,
  path: string,
  { get, head }: OpenApiDocument['paths'][string],
): DocsOperation => {
  const operation = (get ?? head) as OpenApiOperation; // the caller has one of them
  const responses = Object.entries(operation.responses);
  const isRefusal = ([status, { $ref, content }]: readonly [string, OpenApiResponse]): boolean =>
    $ref !== undefined || (/^[45]/.test(status) && content === undefined);
  return {
    id: operation.operationId,
    method: get === undefined ? 'HEAD' : 'GET',
    path,
    summary: operation.summary,
    description: operation.description,
    auth: authOf(operation),
    transport: transportOf(operation),
    hasHead: get !== undefined && head !== undefined,
    parameters: operation.parameters,
    answers: responses.filter((entry) => !isRefusal(entry)).map((entry) => toAnswer(document, entry)),
    refusals: responses.filter(isRefusal).map((entry) => toRefusal(document, entry)),
  };
};

const toAnswer = (
  { components }: OpenApiDocument,
  [status, { description, content, headers = {} }]: readonly [string, OpenApiResponse],
): DocsAnswer => {
  const [contentType, body] = Object.entries(content ?? {})[0] ?? [undefined, undefined];
  return {
    status,
    about: description,
    contentType,
    schema: body?.schema,
    headers: Object.entries(headers).map(([name, header]) => ({
      name,
      about: '$ref' in header ? (components.headers[name]?.description ?? '') : header.description,
    })),
  };
};

const toRefusal = (
  { components }: OpenApiDocument,
  [status, { description, $ref }]: readonly [string, OpenApiResponse],
): DocsRefusal => {
  const shared = components.responses[$ref?.split('/').at(-1) ?? ''];
  return {
    status,
    about: shared?.description ?? description,
    codes: shared === undefined ? [] : [...description.matchAll(/`(\w+)`/g)].map(([, code]) => code ?? ''),
  };
};
