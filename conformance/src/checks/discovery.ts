// The catalog: its entries, its filters, what is public and what is hidden; and the list of readable streams that SDKs call.
import { dateFilters, jsonTextOf, nameFilters } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import { entriesOf, feedIdsOf, isFeedId, type SampleEntry, targets } from '../sample.ts';
import { demand, demandStatus, excerpt, SkipError } from '../verdict.ts';

const anonymous = { signed: false } as const;

/** Reads a catalog; fails unless it is 200 with a list. */
const readCatalog = async (
  { ask }: CheckContext,
  query: string,
  changes: Parameters<CheckContext['ask']>[1] = anonymous,
) => {
  const answer = await ask(query === '' ? targets.discovery : `${targets.discovery}?${query}`, changes);
  demandStatus(answer, [200]);
  const { feeds } = Object(answer.json);
  demand(Array.isArray(feeds), 'an object with a list feeds', () => excerpt(answer.text), answer);
  return { answer, entries: entriesOf(answer.json) };
};

/** Whether a value of the catalog is a text that a filter can name. */
const isNameable = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && !/[,\p{Cs}]/u.test(value);

/** A time of the catalog in milliseconds; NaN for what is none. */
const timeOf = (value: unknown): number => (typeof value === 'string' ? Date.parse(value) : Number.NaN);

const idsOf = (entries: readonly SampleEntry[]): readonly string[] => entries.map(({ feedId }) => feedId);

const requireEntries = async ({ sample }: CheckContext): Promise<readonly SampleEntry[]> => {
  const entries = await sample.catalog();
  if (entries.length === 0) throw new SkipError('The public catalog is empty.');
  return entries;
};

const entryFields = ['feedId', 'baseAsset', 'quoteAsset', 'status'] as const;

const entry: Check['run'] = async (context) => {
  const { answer, entries } = await readCatalog(context, '');
  for (const one of entries) {
    const bad = entryFields.find((name) => typeof one[name] !== 'string' || one[name] === '');
    demand(
      bad === undefined,
      `${entryFields.join(', ')} as texts`,
      () => `${bad} is missing in ${excerpt(jsonTextOf(one))}`,
      answer,
    );
    demand(/^0x[0-9a-f]{64}$/.test(one.feedId), 'feedId as 0x and 64 hex digits', () => excerpt(one.feedId), answer);
  }
  const ids = idsOf(entries);
  const twice = ids.find((id, i) => ids.indexOf(id) < i);
  demand(twice === undefined, 'each stream once', () => `${twice} twice`, answer);
};

/** A filter by name lists the entries that have a value, and only those. */
const filterBy = (parameter: string, field: string): Check => ({
  id: `discovery.${parameter.replaceAll('_', '-')}`,
  title: `${parameter} lists the streams with that value, and no others`,
  source: 'specification',
  sentence: `${parameter}: ${filterMeanings[parameter] ?? ''}`,
  run: async (context) => {
    const all = await requireEntries(context);
    const values = all.map((one) => one[field]).filter(isNameable);
    const value = values.find((one) => one !== values[0]) ?? values[0];
    if (value === undefined) throw new SkipError(`No entry of the catalog has ${field}.`);
    const expected = all.filter((one) => one[field] === value).map(({ feedId }) => feedId);
    const { answer, entries } = await readCatalog(context, `${parameter}=${encodeURIComponent(value)}`);
    const found = new Set(idsOf(entries));
    const missing = expected.find((id) => !found.has(id));
    demand(missing === undefined, `every stream with ${field} ${value}`, () => `${missing} is not listed`, answer);
    const isValue = (text: unknown) => typeof text === 'string' && text.toLowerCase() === value.toLowerCase();
    const foreign = entries.find((one) => !isValue(one[field]));
    demand(
      foreign === undefined,
      `only streams with ${field} ${value}`,
      () => `${foreign?.feedId} has ${excerpt(jsonTextOf(foreign?.[field]))}`,
      answer,
    );
    // Where all entries have one value, only another one shows that the filter works. Rejecting it is fine.
    const strange = await context.ask(`${targets.discovery}?${parameter}=no-such-value`, anonymous);
    demandStatus(strange, [200, 400]);
    const listed = entriesOf(strange.json).length;
    demand(listed === 0, 'an empty list', () => `${listed} streams`, strange);
    if (without(entries, all).length > 0) {
      const [extra] = without(entries, (await readCatalog(context, '')).entries);
      demand(extra === undefined, 'only streams of the catalog', () => `${extra} is listed only here`, answer);
    }
  },
});

const filterMeanings: Readonly<Record<string, string>> = {
  base_asset: 'Base asset of the pair',
  quote_asset: 'Quote asset of the pair',
  asset_class: 'Broad asset category',
  feed_type: 'Stream category',
  attribute_type: 'Kind of data reported',
  status: 'Stream status',
  network_type: 'Type of the network that serves the stream',
  created: 'Filter by creation date',
  expected_decommission: 'Filter by scheduled decommission date',
  decommissioned: 'Filter by decommission date',
};

const dayMs = 86_400_000;
const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

/** Earlier dates stand for "none", as year 1 does in Go. */
const firstMs = Date.UTC(1990, 0, 1);
/** Later dates stand for "never", and the day after them has no year of four digits. */
const lastMs = Date.UTC(9999, 0, 1);

/** Dates of one kind: entries after and before a day, and none on the wrong side. */
const filterByDate = (prefix: string, field: string): Check => ({
  id: `discovery.${prefix.replaceAll('_', '-')}`,
  title: `${prefix}_after and ${prefix}_before filter by ${field}`,
  source: 'specification',
  sentence: `${prefix}_after, ${prefix}_before: ${filterMeanings[prefix] ?? ''}`,
  run: async (context) => {
    const [after, before] = [`${prefix}_after`, `${prefix}_before`];
    const all = await requireEntries(context);
    // A date that is null is none; one that is not shown may be any.
    const shown = all.filter((one) => one[field] !== undefined);
    if (shown.length === 0) throw new SkipError(`No entry of the catalog has ${field}.`);
    const dates = all.map((one) => timeOf(one[field])).filter((ms) => ms >= firstMs && ms <= lastMs);
    // Without a date in the catalog both lists are empty, which shows as much.
    const ms = dates[0] ?? Date.UTC(2025, 0, 1);
    for (const [parameter, day, holds] of [
      [after, dayOf(ms - 2 * dayMs), (at: number) => at > ms - 2 * dayMs],
      [before, dayOf(ms + 2 * dayMs), (at: number) => at < ms + 2 * dayMs],
    ] as const) {
      const { answer, entries } = await readCatalog(context, `${parameter}=${day}`);
      const wrong = entries.find((one) => one[field] !== undefined && !holds(timeOf(one[field])));
      demand(
        wrong === undefined,
        `only streams with ${field} on that side of ${day}`,
        () => `${wrong?.feedId} has ${excerpt(jsonTextOf(wrong?.[field]))}`,
        answer,
      );
      const missing = all.find((one) => timeOf(one[field]) === ms && !idsOf(entries).includes(one.feedId));
      demand(
        missing === undefined,
        `the stream with ${field} ${dayOf(ms)}`,
        () => `${missing?.feedId} is not listed`,
        answer,
      );
    }
    const beforeAll = await readCatalog(context, `${before}=1990-01-01`);
    const later = beforeAll.entries.filter((one) => one[field] !== undefined && !(timeOf(one[field]) < firstMs));
    demand(later.length === 0, 'no stream from 1990 or later', () => `${later.length} streams`, beforeAll.answer);
  },
});

const combined: Check['run'] = async (context) => {
  const [first] = await requireEntries(context);
  const base = encodeURIComponent(isNameable(first?.baseAsset) ? first.baseAsset : 'none');
  const { answer, entries } = await readCatalog(context, `base_asset=${base}&status=no-such-status`);
  demand(entries.length === 0, 'an empty list: no stream has both', () => `${entries.length} streams`, answer);
};

/** Reads both lists again, so that a change of the catalog during the run does not count. */
const hiddenFromPublic: Check['run'] = async (context) => {
  const plain = await readCatalog(context, '');
  const hidden = await readCatalog(context, 'hidden=true');
  const extra = idsOf(hidden.entries).find((id) => !idsOf(plain.entries).includes(id));
  demand(extra === undefined, 'the same list as without hidden=true', () => `${extra} is listed too`, hidden.answer);
};

/** The entries of one list that are not in another. */
const without = (entries: readonly SampleEntry[], others: readonly SampleEntry[]): readonly string[] => {
  const known = new Set(idsOf(others));
  return idsOf(entries).filter((id) => !known.has(id));
};

/** What is not hidden is listed to everyone: with a signature that does not ask for hidden streams, the list is the public one. */
const samePublic =
  (query: string): Check['run'] =>
  async (context) => {
    const open = await readCatalog(context, '');
    const signed = await readCatalog(context, query, {});
    const again = await readCatalog(context, ''); // the catalog may change meanwhile
    const [missing] = without(signed.entries, [...open.entries, ...again.entries]);
    if (missing !== undefined && again.answer.headers.age !== undefined)
      throw new SkipError('The anonymous catalog comes from a cache, which may be older than a change.');
    demand(
      missing === undefined,
      'the list that a signed request gets',
      () => `${missing} is listed only with a signature: it is public and left out here, or hidden and listed there`,
      again.answer,
    );
    const [extra] = without(
      open.entries.filter(({ feedId }) => idsOf(again.entries).includes(feedId)),
      signed.entries,
    );
    demand(
      extra === undefined,
      'the list that an anonymous request gets',
      () => `${extra} is listed only without a signature`,
      signed.answer,
    );
  };

/** Streams that only hidden=true lists, or that the operator calls hidden, are not listed to others. */
const hiddenStaysHidden: Check['run'] = async (context) => {
  const open = await readCatalog(context, '');
  const plain = await readCatalog(context, '', {});
  const all = await readCatalog(context, 'hidden=true', {});
  const hidden = [...context.hiddenIds, ...without(all.entries, plain.entries)];
  if (hidden.length === 0) throw new SkipError('This account may read no hidden stream. Name one with --hidden.');
  for (const { answer, entries } of [open, plain]) {
    const shown = hidden.find((id) => idsOf(entries).includes(id));
    demand(shown === undefined, 'no hidden stream', () => `${shown} is listed, although it is hidden`, answer);
  }
};

/** A stream that the account may read is public, or hidden and listed to those who ask. */
const listsReadable: Check['run'] = async (context) => {
  const readable = feedIdsOf((await requireFeeds(context)).json).filter(isFeedId);
  const { answer, entries } = await readCatalog(context, 'hidden=true', {});
  const listed = new Set(idsOf(entries).map((id) => id.toLowerCase()));
  const missing = readable.find((id) => !listed.has(id.toLowerCase()));
  demand(missing === undefined, 'every stream of /api/v1/feeds', () => `${missing} is not listed`, answer);
};

const hiddenForEntitled: Check['run'] = async (context) => {
  const plain = await readCatalog(context, '', {});
  const hidden = await readCatalog(context, 'hidden=true', {});
  const lost = idsOf(plain.entries).find((id) => !idsOf(hidden.entries).includes(id));
  demand(
    lost === undefined,
    'every stream that is listed without hidden=true',
    () => `${lost} is not listed`,
    hidden.answer,
  );
  const extra = idsOf(hidden.entries).filter((id) => !idsOf(plain.entries).includes(id));
  for (const id of extra.filter(isFeedId).slice(0, 2)) {
    const latest = await context.ask(targets.latest(id));
    demand(latest.status !== 401, `a readable stream, because ${id} is hidden and listed`, () => '401', latest);
  }
};

const requireFeeds = async ({ ask }: CheckContext) => {
  const answer = await ask(targets.feeds);
  if (answer.status === 404)
    throw new SkipError('The deployment has no /api/v1/feeds, which is not in the specification.');
  demandStatus(answer, [200]);
  return answer;
};

export const discoveryChecks: readonly Check[] = [
  {
    id: 'discovery.anonymous',
    title: 'The catalog is readable without authentication',
    source: 'specification',
    sentence: 'Authentication is optional. Without it, only publicly available streams are listed.',
    run: async (context) => void (await readCatalog(context, '')),
  },
  {
    id: 'discovery.signed',
    title: 'The catalog is readable with a signature',
    source: 'specification',
    sentence: 'Authentication is optional.',
    run: async (context) => void (await readCatalog(context, '', {})),
  },
  {
    id: 'discovery.entry',
    title: 'Each entry has feedId, baseAsset, quoteAsset and status',
    source: 'specification',
    sentence: "Each entry carries the stream's ID, its asset pair (base asset and quote asset) and its status.",
    run: entry,
  },
  ...Object.entries(nameFilters).map(([parameter, field]) => filterBy(parameter, field)),
  {
    id: 'discovery.combined',
    title: 'Several filters must all match',
    source: 'specification',
    sentence:
      'It offers a discovery operation that returns the catalog of streams (stream ID, asset pair, status), with filters.',
    run: combined,
  },
  ...Object.entries(dateFilters).map(([prefix, field]) => filterByDate(prefix, field)),
  {
    id: 'discovery.hidden-public',
    title: 'hidden=true shows nothing more without authentication',
    source: 'specification',
    sentence:
      'A hidden stream is listed only to an authenticated caller whose key is entitled to it and who asks for hidden streams.',
    run: hiddenFromPublic,
  },
  {
    id: 'discovery.hidden-entitled',
    title: 'hidden=true adds only hidden streams that the account may read',
    source: 'specification',
    sentence: "Boolean. When set, hidden streams reachable by the caller's key are included",
    run: hiddenForEntitled,
  },
  {
    id: 'discovery.public',
    title: 'The anonymous list is that of a signed request without hidden=true',
    source: 'specification',
    sentence: 'Without it, only publicly available streams are listed.',
    run: samePublic(''),
  },
  {
    id: 'discovery.hidden-false',
    title: 'hidden=false lists what is listed without it',
    source: 'specification',
    sentence: "Boolean. When set, hidden streams reachable by the caller's key are included",
    run: samePublic('hidden=false'),
  },
  {
    id: 'discovery.hidden-anonymous',
    title: 'Hidden streams are not listed to those who do not sign, or do not ask for them',
    source: 'specification',
    sentence: 'A hidden stream is listed only to an authenticated caller whose key is entitled to it',
    run: hiddenStaysHidden,
  },
  {
    id: 'discovery.readable',
    title: 'Every readable stream is listed, with hidden=true',
    source: 'specification',
    sentence: 'With it, hidden streams the key is entitled to can be included.',
    run: listsReadable,
  },
  {
    id: 'discovery.hidden-malformed',
    title: 'A value of hidden that is not a boolean is 400',
    source: 'specification',
    sentence: 'A query argument is missing or malformed',
    run: async ({ ask }) => demandStatus(await ask(`${targets.discovery}?hidden=maybe`, anonymous), [400]),
  },
  {
    id: 'discovery.wrong-signature',
    title: 'A wrong signature is 401 here too',
    source: 'specification',
    sentence: 'A request whose signature does not match the one the server expects fails with 401.',
    run: async ({ ask }) => demandStatus(await ask(targets.discovery, { signed: { withOtherSecret: true } }), [401]),
  },
];

export const feedsChecks: readonly Check[] = [
  {
    id: 'feeds.shape',
    title: '/api/v1/feeds lists the readable streams as {"feeds":[{"feedID"}]}',
    source: 'SDKs',
    sentence: 'Every SDK lists the readable streams with GET /api/v1/feeds.',
    run: async (context) => {
      const answer = await requireFeeds(context);
      const ids = feedIdsOf(answer.json);
      const { feeds } = Object(answer.json);
      demand(
        Array.isArray(feeds) && ids.length === feeds.length,
        'feeds with a feedID each',
        () => excerpt(answer.text),
        answer,
      );
      const bad = ids.find((id) => !/^0x[0-9a-f]{64}$/.test(id));
      demand(bad === undefined, 'feedID as 0x and 64 hex digits', () => excerpt(String(bad)), answer);
    },
  },
  {
    id: 'feeds.readable',
    title: 'The listed streams are readable',
    source: 'SDKs',
    sentence: 'SDKs read the streams that /api/v1/feeds lists.',
    run: async (context) => {
      const ids = feedIdsOf((await requireFeeds(context)).json).filter(isFeedId);
      if (ids.length === 0) throw new SkipError('/api/v1/feeds lists no stream.');
      for (const id of ids.slice(0, 3)) {
        const answer = await context.ask(targets.latest(id));
        demand(answer.status !== 401, 'a readable stream', () => `401 for ${id}`, answer);
      }
    },
  },
  {
    id: 'feeds.complete',
    title: 'Streams of the catalog that are not listed are not readable',
    source: 'SDKs',
    sentence: 'Every SDK lists the readable streams with GET /api/v1/feeds.',
    run: async (context) => {
      const answer = await requireFeeds(context);
      const listed = new Set(feedIdsOf(answer.json).map((id) => id.toLowerCase()));
      const others = idsOf(await context.sample.catalog()).filter(
        (id) => isFeedId(id) && !listed.has(id.toLowerCase()),
      );
      for (const id of others.slice(0, 3)) {
        const { status } = await context.ask(targets.latest(id));
        demand(status !== 200, 'every readable stream', () => `${id} is readable, but not listed`, answer);
      }
    },
  },
  {
    id: 'feeds.anonymous',
    title: '/api/v1/feeds requires authentication',
    source: 'specification',
    sentence:
      'Every route requires authentication, except discovery, which may be called anonymously to list public streams.',
    run: async (context) => {
      await requireFeeds(context);
      demandStatus(await context.ask(targets.feeds, anonymous), [400, 401]);
    },
  },
];
