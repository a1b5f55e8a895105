// Merges two forms of one path and method into one operation: OpenAPI allows only one per path and method (D99).
import type { Header, OneOf, OpenApiOperation, OpenApiParameter, OpenApiResponse, Reference } from './document.ts';

/** Parameters of both forms stay as they are; those of only one form become optional. The name is the first form's. */
export const mergeForms = (first: OpenApiOperation, second: OpenApiOperation): OpenApiOperation => ({
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
