// Types of the OpenAPI 3.1 document: the part of the standard that openapi.ts uses.
import type { Route } from '../api.ts';
import type { BodyName } from '../bodies.ts';
import type { BodySchema } from '../body-schemas.ts';
import type { ErrorCode, errorTable } from '../errors.ts';
import type { authHeaders } from '../request-signing.ts';

/** Limits that a deployment may set and its document states. */
export type DocumentedBounds = { readonly [K in 'feedIdsMax' | 'retentionDays' | 'requestsPerSecond']: number };

/** Schema of a query argument or a header. */
export type ValueSchema = {
  readonly type: 'string' | 'integer' | 'boolean' | 'array';
  readonly items?: ValueSchema;
  readonly enum?: readonly number[];
  readonly default?: number | boolean;
} & { readonly [K in 'pattern' | 'format']?: string } & {
  readonly [K in 'minLength' | 'minimum' | 'maximum' | 'minItems' | 'maxItems']?: number;
};

export type OpenApiParameter = {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: ValueSchema;
  /** Lists are one comma-separated argument. */
  readonly style?: 'form';
  readonly explode?: false;
};

export type Reference = { readonly $ref: string };
/** One of several bodies, for a path with several forms. */
export type OneOf = { readonly oneOf: readonly Reference[] };
export type Headers = Readonly<Record<string, Reference | Header>>;

/** A full response, or a reference to a shared one with its own description, as OpenAPI 3.1 allows. */
export type OpenApiResponse = {
  readonly description: string;
  readonly $ref?: string;
  readonly headers?: Headers;
  readonly content?: { readonly 'application/json'?: { readonly schema: Reference | OneOf } } & {
    readonly [T in NonNullable<Route['contentType']>]?: { readonly schema: ValueSchema };
  };
};

export type OpenApiOperation = {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters: readonly OpenApiParameter[];
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
  readonly 'x-transport'?: 'websocket';
};

export type Method = 'get' | 'head';
export type ApiKey = {
  readonly type: 'apiKey';
  readonly in: 'header';
  readonly name: string;
  readonly description: string;
};
/** A response header. */
export type Header = { readonly description: string; readonly required?: true; readonly schema: ValueSchema };

export type OpenApiDocument = {
  readonly openapi: '3.1.0';
  readonly info: {
    readonly title: string;
    readonly version: string;
    readonly description: string;
    readonly license: { readonly name: string; readonly identifier: string };
  };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, { readonly [M in Method]?: OpenApiOperation }>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<keyof typeof authHeaders, ApiKey>>;
    readonly headers: Readonly<Record<string, Header>>;
    readonly responses: Readonly<Record<string, OpenApiResponse>>;
    readonly schemas: Readonly<Record<BodyName, BodySchema>>;
  };
  /** The error table, for those who have only this document. */
  readonly 'x-errors': readonly ({ readonly code: ErrorCode } & (typeof errorTable)[ErrorCode])[];
};
