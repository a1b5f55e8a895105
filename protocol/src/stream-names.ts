// Finds a stream by a pair such as `BTC/USD`, a full name, or a feed ID (D98), for client and command line alike. The caller supplies the
// entries.
import type { Stream } from './catalog.ts';
import { oneLine } from './errors.ts';
import { schemaVersionOf } from './feed-id.ts';

/** The fields for matching. Entries of other servers may lack all but the first two. */
export type NamedStream = { readonly feedId: string; readonly name: string } & {
  readonly [K in (typeof distinguishingFields)[number] | 'baseAsset' | 'quoteAsset' | 'status']?: string | undefined;
} & { readonly hidden?: boolean | undefined };

/** Fields in which two streams of one pair may differ, most important first. */
const distinguishingFields = [
  'attributeType',
  'networkType',
  'status',
  'feedType',
  'serviceLevel',
  'marketHours',
] as const satisfies readonly (keyof Stream)[];

/** What a name matched. `several` has at least two streams; `near` are streams with similar names, possibly none. */
export type StreamMatch<S extends NamedStream> =
  | { readonly found: 'one'; readonly stream: S }
  | { readonly found: 'several'; readonly streams: readonly S[] }
  | { readonly found: 'none'; readonly near: readonly S[] };

/** Most streams that a message lists. */
const listedMax = 10;
/** Most similar names that a message suggests. */
const nearMax = 3;
/** Longest name that is compared for similarity, which takes quadratic time. */
const comparedMax = 60;

const pairsOf = ({ name, baseAsset, quoteAsset }: NamedStream): readonly string[] => {
  const pairs = [name.split('-', 1)[0] ?? ''];
  if (baseAsset && quoteAsset) pairs.push(`${baseAsset}/${quoteAsset}`);
  return pairs.map((pair) => pair.toLowerCase()).filter((pair) => pair.includes('/'));
};

/**
 * Matches a name in any case: first as a feed ID or full name, then as a pair. Other streams take precedence over decommissioned ones, and
 * listed over hidden ones, so that neither makes a name ambiguous.
 */
export function matchStreams<S extends NamedStream>(name: string, entries: readonly S[]): StreamMatch<S> {
  const key = name.trim().toLowerCase();
  const exact = entries.filter((one) => one.feedId.toLowerCase() === key || one.name.toLowerCase() === key);
  const matching = exact.length > 0 ? exact : entries.filter((one) => pairsOf(one).includes(key));
  const current = prefer(matching, ({ status }) => status !== 'decommissioned');
  const streams = prefer(current, ({ hidden }) => hidden !== true);
  const [stream, ...others] = streams;
  if (stream === undefined) return { found: 'none', near: nearTo(key, entries) };
  return others.length === 0 ? { found: 'one', stream } : { found: 'several', streams };
}

const prefer = <T>(all: readonly T[], isPreferred: (one: T) => boolean): readonly T[] => {
  const preferred = all.filter(isPreferred);
  return preferred.length > 0 ? preferred : all;
};

const plain = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '');

/** Streams whose pair or name is similar, closest first. */
const nearTo = <S extends NamedStream>(key: string, entries: readonly S[]): readonly S[] => {
  const asked = plain(key);
  if (asked === '' || asked.length > comparedMax) return [];
  const distanceMax = Math.min(3, Math.ceil(asked.length / 3));
  const distances = entries.map((stream) => {
    const spellings = [...pairsOf(stream), stream.name].map(plain).filter(({ length }) => length <= comparedMax);
    // Half of a pair, such as `BTC`, counts as one typo.
    const isHalf = pairsOf(stream).some((pair) => pair.split('/').some((asset) => plain(asset) === asked));
    return { stream, distance: Math.min(isHalf ? 1 : Infinity, ...spellings.map((one) => distanceOf(asked, one))) };
  });
  const near = distances.filter(({ distance }) => distance <= distanceMax);
  return near
    .sort((a, b) => a.distance - b.distance)
    .slice(0, nearMax)
    .map(({ stream }) => stream);
};

/** Levenshtein distance. */
const distanceOf = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (let j = 1; j < row.length; j += 1) {
      const replaced = (row[j - 1] as number) + (letter === to[j - 1] ? 0 : 1); // rows have one length
      next.push(Math.min(replaced, (row[j] as number) + 1, (next[j - 1] as number) + 1)); // both rows are as long
    }
    row = next;
  }
  return row.at(-1) as number; // a row has at least one item
};

/** One of several streams: its name and feed ID, and the values that differ among them. */
export type StreamDifference = {
  readonly name: string;
  readonly feedId: string;
  readonly differs: Readonly<Record<string, string>>;
};

/** How several streams differ. The schema version is read from the feed ID. */
export function distinguishStreams(streams: readonly NamedStream[]): readonly StreamDifference[] {
  const rows = streams.map((stream) => ({
    ...stream,
    schemaVersion: `V${schemaVersionOf(stream.feedId)}`,
  }));
  const fields = ([...distinguishingFields, 'schemaVersion'] as const).filter(
    (key) => new Set(rows.map((row) => row[key])).size > 1,
  );
  return rows.map((row) => ({
    name: row.name,
    feedId: row.feedId,
    differs: Object.fromEntries(fields.map((key) => [key, row[key] ?? 'unknown'])),
  }));
}

/** Why a name does not match exactly one stream, and which names would; one line per matching stream. */
export function explainMatch(name: string, match: Exclude<StreamMatch<NamedStream>, { found: 'one' }>): string {
  if (match.found === 'none') {
    const near = [...new Set(match.near.map((stream) => oneLine(stream.name)))];
    return `No stream is named ${JSON.stringify(name)}.${near.length === 0 ? '' : ` Similar: ${near.join(', ')}.`}`;
  }
  const lines = distinguishStreams(match.streams).map(({ name: full, feedId, differs }) => {
    const values = Object.entries(differs).map(([key, value]) => `${key} ${value}`);
    return `  ${oneLine(`${full}  ${feedId}${values.length === 0 ? '' : `  (${values.join(', ')})`}`)}`;
  });
  const more = lines.length > listedMax ? [`  and ${lines.length - listedMax} more`] : [];
  return [`${JSON.stringify(name)} matches ${lines.length} streams. Give a full name or a feed ID:`]
    .concat(lines.slice(0, listedMax), more)
    .join('\n');
}
