// The catalog's filters: typed, and rejected when misspelled, because the server ignores filters that it does not know.
import { type Body, type CatalogEntry, malformedArgument, parseDay } from '@sealpost/protocol';
import { targetOf } from './arguments.ts';
import { readArgument, SealpostError } from './errors.ts';
import type { AnswerDetails } from './request/answer.ts';
import type { CallOptions } from './request/call.ts';
import { filterKinds, paths } from './request/paths.ts';
import type { Requester } from './request/requester.ts';

type Kinds = typeof filterKinds;

type CamelCase<S extends string> = S extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : S;

/** A filter's value, by its kind in the route table. */
type FilterValue<K> = K extends 'names' ? string | readonly string[] : K extends 'boolean' ? boolean : string | Date;

/**
 * Streams must match every filter. Names: one, or a list of alternatives, in any case. Days: `YYYY-MM-DD` or a Date, strictly after or before.
 * `hidden` adds the hidden streams that the account is entitled to.
 */
export type DiscoveryFilters = {
  readonly [N in keyof Kinds & string as CamelCase<N>]?: FilterValue<Kinds[N]> | undefined;
};

const toWire = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const readFilter = (name: string, value: unknown): readonly [string, string] => {
  const wire = toWire(name);
  const kinds: Readonly<Record<string, string>> = filterKinds;
  const kind = Object.hasOwn(kinds, wire) ? kinds[wire] : undefined;
  if (kind === 'boolean' && typeof value === 'boolean') return [wire, String(value)];
  if (kind === 'names') {
    const names: readonly unknown[] = Array.isArray(value) ? value : [value];
    if (names.length > 0 && names.every((one) => typeof one === 'string' && one !== '')) return [wire, names.join(',')];
    throw malformedArgument(name, value, 'a name or a list of names');
  }
  if (kind === 'day') {
    const day =
      value instanceof Date && !Number.isNaN(value.getTime()) ? value.toISOString().slice(0, 10) : String(value);
    parseDay(day, name);
    return [wire, day];
  }
  throw malformedArgument(name, value, kind === undefined ? 'no filter of this name' : 'true or false');
};

export type CatalogResult = { readonly feeds: readonly CatalogEntry[]; readonly details: AnswerDetails };

/** An entry of any server: the specification names only stream ID, pair and status. Without a name, it has that of its pair, else its feed ID. */
const toEntry = (raw: unknown): CatalogEntry | undefined => {
  const { feedID, feedId = feedID, name, baseAsset, quoteAsset } = Object(raw) as Readonly<Record<string, unknown>>; // looked at here
  if (typeof feedId !== 'string') return undefined;
  const pair = typeof baseAsset === 'string' && typeof quoteAsset === 'string' ? `${baseAsset}/${quoteAsset}` : feedId;
  return { ...(raw as CatalogEntry), feedId, name: typeof name === 'string' ? name : pair }; // fields that others leave out are absent
};

/** The catalog, filtered: public streams, and with credentials and `hidden` the hidden ones that the account is entitled to. */
export async function discovery(
  requester: Pick<Requester, 'get'>,
  filters: DiscoveryFilters = {},
  options?: CallOptions,
): Promise<CatalogResult> {
  const given = Object.entries(filters).filter(([, value]) => value !== undefined);
  const query = readArgument(() => Object.fromEntries(given.map(([name, value]) => readFilter(name, value))));
  const { body, details } = await requester.get<Partial<Body<'Catalog'>>>(targetOf(paths.discovery, query), options);
  if (body.feeds === null) return { feeds: [], details };
  const entries = Array.isArray(body.feeds) ? body.feeds.map(toEntry) : [undefined];
  const feeds = entries.filter((entry) => entry !== undefined);
  if (feeds.length === entries.length) return { feeds, details };
  const { status, requestId } = details;
  throw new SealpostError('unexpected_answer', 'The response is not a catalog.', { status, requestId });
}
