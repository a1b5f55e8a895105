// A body as an answer could have it, made from the examples of its schema, with this server's own streams.
import type { CatalogEntry } from '@sealpost/protocol';
import type { DocsSchema, DocsSchemas } from './document.ts';
import { resolveSchema } from './schema-rows.ts';

/** What samples take from the server. */
export type SampleStreams = {
  /** The first is used first; empty while the catalog is unknown. */
  readonly feedIds: readonly string[];
  /** The catalog's entries of these streams. */
  readonly entries: readonly CatalogEntry[];
};

const depthMax = 8;

/** Answers of the first stream; lists have one item. */
export function sampleBody(schema: DocsSchema, schemas: DocsSchemas, streams: SampleStreams): unknown {
  const [feedId] = streams.feedIds;
  const make = (given: DocsSchema, above: readonly string[]): unknown => {
    const { schema: found, names } = resolveSchema(given, schemas);
    if (above.length > depthMax || names.some((name) => above.includes(name))) return null;
    if (names.includes('CatalogEntry') && streams.entries[0] !== undefined) return streams.entries[0];
    const seen = [...above, ...names, ''];
    if (isFeedId(found)) return feedId ?? found.examples?.[0] ?? 'FEED_ID';
    if (found.examples !== undefined) return found.examples[0];
    if (found.oneOf !== undefined) return make(found.oneOf[0] ?? {}, seen);
    if (found.enum !== undefined) return found.enum[0];
    if (found.items !== undefined) return [make(found.items, seen)];
    if (found.properties !== undefined || found.additionalProperties !== undefined) return makeObject(found, seen);
    return plainValue(found);
  };
  const makeObject = ({ properties = {}, additionalProperties }: DocsSchema, seen: readonly string[]): unknown => {
    const fields = Object.entries(properties).map(([name, field]) => [name, make(field, seen)] as const);
    const others = typeof additionalProperties === 'object' ? [['KEY', make(additionalProperties, seen)] as const] : [];
    return Object.fromEntries([...fields, ...others]);
  };
  return make(schema, []);
}

const isFeedId = ({ pattern = '' }: DocsSchema): boolean => /^\^0x\[0-9a-f(?:A-F)?\]\{64\}\$$/.test(pattern);

const plainValue = ({ type, minimum }: DocsSchema): unknown => {
  const [first] = [type ?? 'null'].flat();
  if ([type].flat().includes('null')) return null;
  if (first === 'integer' || first === 'number') return minimum ?? 0;
  return first === 'boolean' ? true : first === 'string' ? 'text' : null;
};

/** Items of a list that a sample shows. */
const itemsMax = 2;
/** Characters of a text that a sample shows; a feed ID has 66. */
const textMax = 80;

/** A real answer as a sample: the first items of each list, and the beginning of long texts. */
export function shortenBody(body: unknown): unknown {
  if (typeof body === 'string') return body.length > textMax ? `${body.slice(0, 66)}…` : body;
  if (Array.isArray(body)) return body.slice(0, itemsMax).map(shortenBody);
  if (typeof body !== 'object' || body === null) return body;
  return Object.fromEntries(Object.entries(body).map(([name, value]) => [name, shortenBody(value)]));
}
