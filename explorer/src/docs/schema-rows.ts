// A schema as rows of a table: nested fields below their parent, references resolved. A schema within itself is named, not repeated.
import type { DocsSchema, DocsSchemas } from './document.ts';

export type SchemaRow = {
  /** Its place in the body: `reports[].feedID`. */
  readonly path: string;
  readonly name: string;
  /** 0 for a field of the body itself. */
  readonly depth: number;
  readonly type: string;
  /** What else holds for a value: bounds, pattern, values. */
  readonly limits: readonly string[];
  readonly isRequired: boolean;
  readonly about: string;
};

/** Deeper fields are left out; the document's deepest are at 3. */
const depthMax = 6;

const refName = ($ref: string): string => $ref.split('/').at(-1) ?? '';

/** What a reference leads to, with the names of the references that were followed. */
export function resolveSchema(
  schema: DocsSchema,
  schemas: DocsSchemas,
): { readonly schema: DocsSchema; readonly names: readonly string[] } {
  const names: string[] = [];
  let current = schema;
  while (current.$ref !== undefined) {
    const name = refName(current.$ref);
    if (names.includes(name)) return { schema: {}, names };
    names.push(name);
    current = schemas[name] ?? {};
  }
  return { schema: current, names };
}

const isNull = ({ type }: DocsSchema): boolean => type === 'null';

/** The one schema behind lists and null, which may have fields. */
const innerOf = (schema: DocsSchema): DocsSchema => {
  const [only, ...others] = schema.oneOf?.filter((form) => !isNull(form)) ?? [];
  if (only !== undefined && others.length === 0) return innerOf(only);
  return schema.items === undefined ? schema : innerOf(schema.items);
};

/** A type in words: `string`, `list of Report`, `Window or null`. */
export function typeText(schema: DocsSchema): string {
  if (schema.$ref !== undefined) return refName(schema.$ref);
  if (schema.oneOf !== undefined) return schema.oneOf.map(typeText).join(' or ');
  if (schema.items !== undefined) return `list of ${typeText(schema.items)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

const rangeText = ({ minimum, maximum }: DocsSchema): readonly string[] => {
  if (minimum !== undefined && maximum !== undefined) return [`${minimum} to ${maximum}`];
  if (maximum !== undefined) return [`at most ${maximum}`];
  return minimum === undefined ? [] : [`at least ${minimum}`];
};

const countText = ({ minItems, maxItems }: DocsSchema): readonly string[] => {
  if (maxItems !== undefined) return [`${minItems ?? 0} to ${maxItems} items`];
  return minItems === undefined ? [] : [`at least ${minItems} ${minItems === 1 ? 'item' : 'items'}`];
};

/** What holds for a value besides its type; `int64` says nothing that the bounds do not. */
export const limitTexts = (schema: DocsSchema): readonly string[] => [
  ...(schema.enum === undefined ? [] : [`one of ${schema.enum.join(', ')}`]),
  ...rangeText(schema),
  ...countText(schema),
  ...(schema.format === undefined || schema.format === 'int64' ? [] : [schema.format]),
  ...[schema.pattern ?? schema.items?.pattern].flatMap((pattern) => (pattern === undefined ? [] : [pattern])),
  ...(schema.default === undefined ? [] : [`default ${String(schema.default)}`]),
];

/** The rows of a body's fields, in the document's order. */
export function schemaRows(body: DocsSchema, schemas: DocsSchemas): readonly SchemaRow[] {
  const rowsOf = (schema: DocsSchema, prefix: string, depth: number, above: readonly string[]): SchemaRow[] => {
    const { schema: found, names } = resolveSchema(innerOf(schema), schemas);
    if (depth >= depthMax || names.some((name) => above.includes(name))) return [];
    const seen = [...above, ...names];
    const { properties = {}, required = [], additionalProperties } = found;
    const fields = Object.entries(properties).map(([name, field]) => ({
      name,
      field,
      isRequired: required.includes(name),
    }));
    const others =
      typeof additionalProperties === 'object'
        ? [{ name: 'any key', field: additionalProperties, isRequired: false }]
        : [];
    return [...fields, ...others].flatMap(({ name, field, isRequired }) => {
      const path = `${prefix}${name}`;
      const inner = resolveSchema(field, schemas).schema;
      const row: SchemaRow = {
        path,
        name,
        depth,
        type: typeText(field),
        limits: limitTexts(field),
        isRequired,
        about: field.description ?? inner.description ?? '',
      };
      const isList = field.items !== undefined;
      return [row, ...rowsOf(field, `${path}${isList ? '[]' : ''}.`, depth + 1, seen)];
    });
  };
  return rowsOf(body, '', 0, []);
}

/** The bodies that an answer may have: several for a path with several forms. */
export const bodyForms = (schema: DocsSchema): readonly DocsSchema[] =>
  schema.oneOf !== undefined && !schema.oneOf.some(isNull) ? schema.oneOf : [schema];
