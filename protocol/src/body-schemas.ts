// The parts that the shapes in bodies.ts are made of: types of JSON Schema as far as they use it, and fields that several have.

type StringSchema = {
  readonly type: 'string' | readonly ['string', 'null'];
  readonly pattern?: string;
  readonly format?: string;
  readonly enum?: readonly string[];
  readonly description?: string;
  readonly examples?: readonly string[];
};
type IntegerSchema = {
  readonly type: 'integer';
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
  readonly examples?: readonly number[];
};
type NumberSchema = {
  readonly type: 'number' | readonly ['number', 'null'];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly description?: string;
  readonly examples?: readonly number[];
};
type BooleanSchema = { readonly type: 'boolean'; readonly description?: string };
type RefSchema = { readonly $ref: string };
type ArraySchema = { readonly type: 'array'; readonly items: BodySchema; readonly description?: string };
export type ObjectSchema = {
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

export const hexPattern = (bytes: number) => `^0x[0-9a-f]{${bytes * 2}}$`;

export const feedId = {
  type: 'string',
  pattern: hexPattern(32),
  description: 'Stream identifier, lower-case hex.',
} as const;
export const seconds = (description: string, example = 1_763_200_000) =>
  ({ type: 'integer', minimum: 0, maximum: 4_294_967_295, description, examples: [example] }) as const;
export const count = (description: string, example: number) =>
  ({ type: 'integer', minimum: 0, description, examples: [example] }) as const;
export const text = { type: 'string' } as const;
export const textLike = (example: string, description: string) =>
  ({ type: 'string', description, examples: [example] }) as const;
export const date = (description: string, example: string) =>
  ({ type: 'string', format: 'date-time', description, examples: [example] }) as const;
export const nullableDate = (description: string) =>
  ({ type: ['string', 'null'], format: 'date-time', description }) as const;
export const exactInteger = {
  type: 'string',
  pattern: '^-?[0-9]+$',
  description: 'An exact integer with 18 decimals.',
  examples: ['3865052126782320350000'],
} as const;
export const errorKeys = {
  error: textLike('A query argument is malformed.', 'The same text as message.'),
  message: textLike('A query argument is malformed.', 'What is wrong, for people; it may change.'),
  code: textLike('malformed_argument', 'What is wrong, for programs.'),
  requestId: textLike('7b0d4f6e-2c35-4a8b-9d11-6f3a8e5c0b72', 'As in X-Request-Id.'),
} as const;
export const anyObject = { type: 'object', properties: {}, required: [], additionalProperties: true } as const;
