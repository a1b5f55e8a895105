// What tells streams of the same pair apart.
import type { CatalogEntry } from '@sealpost/protocol';

const pairOf = ({ baseAsset, quoteAsset }: CatalogEntry): string => `${baseAsset}/${quoteAsset}`;

/** What a stream may differ in from others of its pair, the most telling first. */
const facts: readonly Fact[] = [
  ({ attributeType }) => attributeType,
  ({ schemaVersion }) => schemaVersion,
  ({ feedType }) => feedType,
];

/** By feed ID: what distinguishes a stream from the others of its pair. Streams alone in their pair are left out. */
export function distinctionsOf(streams: readonly CatalogEntry[]): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const group of groupByPair(streams).values()) {
    if (group.length === 1) continue;
    const differing = fewestOf(
      facts.filter((fact) => new Set(group.map(fact)).size > 1),
      group,
    );
    for (const stream of group) found.set(stream.feedId, nameIn(stream, group, differing));
  }
  return found;
}

type Fact = (stream: CatalogEntry) => string;

const textOf = (stream: CatalogEntry, used: readonly Fact[]): string => used.map((fact) => fact(stream)).join(' · ');

/** The first of these facts that are enough to tell a group apart; all of them if none is. */
const fewestOf = (differing: readonly Fact[], group: readonly CatalogEntry[]): readonly Fact[] => {
  const count = differing.findIndex((_, i) => {
    const used = differing.slice(0, i + 1);
    return new Set(group.map((stream) => textOf(stream, used))).size === group.length;
  });
  return count === -1 ? differing : differing.slice(0, count + 1);
};

const nameIn = (stream: CatalogEntry, group: readonly CatalogEntry[], used: readonly Fact[]): string => {
  const text = textOf(stream, used);
  const isUnique = group.filter((other) => textOf(other, used) === text).length === 1;
  return isUnique ? text : [text, `…${stream.feedId.slice(-6)}`].filter((part) => part !== '').join(' · ');
};

const groupByPair = (streams: readonly CatalogEntry[]): Map<string, CatalogEntry[]> => {
  const groups = new Map<string, CatalogEntry[]>();
  for (const stream of streams) {
    const group = groups.get(pairOf(stream));
    if (group === undefined) groups.set(pairOf(stream), [stream]);
    else group.push(stream);
  }
  return groups;
};
