// Who reads what: 20 accounts × 50 streams × every route that names streams, against a table that this test works out itself.
import type { FeedId, Stream } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { countOf, isFull, seedOf, tally } from './support/full-count.ts';
import { createRandom } from './support/random.ts';
import { type Credentials, openService, type Reply, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;

type Row = {
  readonly feedId: FeedId;
  /** In the catalog and listed, in the catalog and hidden, or not there at all. */
  readonly kind: 'public' | 'hidden' | 'unknown';
  readonly assetClass: string;
  readonly quoteAsset: string;
  readonly status: Stream['status'];
  readonly hasReports: boolean;
};

const classes = ['Crypto', 'Forex', 'Equities', 'Tokenized Asset'] as const;
const rows: readonly Row[] = Array.from({ length: 50 }, (_, i) => ({
  feedId: secondStream(i + 1),
  kind: i < 30 ? 'public' : i < 42 ? 'hidden' : 'unknown',
  assetClass: classes[i % 4] as string, // below the length
  quoteAsset: i % 3 === 0 ? 'EUR' : 'USD',
  status: i % 7 === 0 ? 'testing' : i % 11 === 0 ? 'decommissioned' : 'live',
  hasReports: i < 42 && i % 5 !== 4,
}));
const [firstPublic, firstHidden, secondHidden, firstUnknown] = [0, 30, 31, 42].map((i) => rows[i]?.feedId) as [
  FeedId,
  FeedId,
  FeedId,
  FeedId,
];

type Reader = {
  readonly name: string;
  readonly entitlements: readonly string[];
  /** The rule in this test's own words; unknown streams are nobody's, whatever it says. */
  readonly may: (row: Row) => boolean;
  readonly locked?: 'disabled' | 'revoked';
};

const isPublic = ({ kind }: Row): boolean => kind === 'public';
const isCrypto = (row: Row): boolean => isPublic(row) && row.assetClass === 'Crypto';
const feed = (feedId: FeedId): string => `feed:${feedId}`;
const is =
  (...feedIds: readonly FeedId[]) =>
  (row: Row): boolean =>
    feedIds.includes(row.feedId);
const nothing = (): boolean => false;
const allHidden = rows.filter(({ kind }) => kind === 'hidden').map(({ feedId }) => feedId);

const readers: readonly Reader[] = [
  { name: 'public', entitlements: ['public'], may: isPublic },
  { name: 'nothing', entitlements: [], may: nothing },
  { name: 'one public stream', entitlements: [feed(firstPublic)], may: is(firstPublic) },
  { name: 'one hidden stream', entitlements: [feed(firstHidden)], may: is(firstHidden) },
  { name: 'a stream that does not exist', entitlements: [feed(firstUnknown)], may: nothing },
  {
    name: 'public and one hidden',
    entitlements: ['public', feed(firstHidden)],
    may: (row) => isPublic(row) || is(firstHidden)(row),
  },
  {
    name: 'public, all hidden',
    entitlements: ['public', ...allHidden.map(feed)],
    may: ({ kind }) => kind !== 'unknown',
  },
  { name: 'all hidden', entitlements: allHidden.map(feed), may: ({ kind }) => kind === 'hidden' },
  { name: 'crypto', entitlements: ['filter:asset_class=Crypto'], may: isCrypto },
  { name: 'crypto in small letters', entitlements: ['filter:asset_class=crypto'], may: isCrypto },
  {
    name: 'crypto or forex',
    entitlements: ['filter:asset_class=Crypto,Forex'],
    may: (row) => isPublic(row) && ['Crypto', 'Forex'].includes(row.assetClass),
  },
  {
    name: 'crypto in euros',
    entitlements: ['filter:asset_class=Crypto&quote_asset=EUR'],
    may: (row) => isCrypto(row) && row.quoteAsset === 'EUR',
  },
  {
    name: 'two filters',
    entitlements: ['filter:asset_class=Tokenized%20Asset', 'filter:quote_asset=EUR'],
    may: (row) => isPublic(row) && (row.assetClass === 'Tokenized Asset' || row.quoteAsset === 'EUR'),
  },
  {
    name: 'a filter that asks for hidden ones',
    entitlements: ['filter:asset_class=Crypto&hidden=true'],
    may: isCrypto,
  },
  {
    name: 'live ones',
    entitlements: ['filter:status=live'],
    may: (row) => isPublic(row) && row.status === 'live',
  },
  { name: 'a filter that nothing passes', entitlements: ['filter:base_asset=NONE'], may: nothing },
  {
    name: 'a filter and hidden ones',
    entitlements: ['filter:asset_class=Forex', feed(firstHidden), feed(secondHidden)],
    may: (row) => (isPublic(row) && row.assetClass === 'Forex') || is(firstHidden, secondHidden)(row),
  },
  { name: 'the same thing twice', entitlements: ['public', 'public', feed(firstPublic)], may: isPublic },
  { name: 'disabled', entitlements: ['public', ...allHidden.map(feed)], may: nothing, locked: 'disabled' },
  { name: 'revoked', entitlements: ['public', ...allHidden.map(feed)], may: nothing, locked: 'revoked' },
];

const moment = now - 5;
type Asked = { readonly route: string; readonly target: (feedId: FeedId) => string; readonly without: number };
/** Every route that names one stream, and what it answers where there is no report. */
const singles: readonly Asked[] = [
  { route: 'at', target: (id) => `/api/v1/reports?feedID=${id}&timestamp=${moment}`, without: 404 },
  { route: 'latest', target: (id) => `/api/v1/reports/latest?feedID=${id}`, without: 404 },
  { route: 'latest of several', target: (id) => `/api/v1/reports/latest?feedIDs=${id}`, without: 206 },
  { route: 'bulk', target: (id) => `/api/v1/reports/bulk?feedIDs=${id}&timestamp=${moment}`, without: 206 },
  { route: 'page', target: (id) => `/api/v1/reports/page?feedID=${id}&startTimestamp=${now - 60}`, without: 200 },
  {
    route: 'coverage',
    target: (id) => `/api/v1/reports/coverage?feedID=${id}&from=${now - 60}&to=${now}`,
    without: 200,
  },
  {
    route: 'candles',
    target: (id) => `/api/v1/reports/candles?feedID=${id}&from=${now - 60}&to=${now}&resolution=60`,
    without: 200,
  },
];

let service: Service;
let accounts: readonly (Reader & { readonly credentials: Credentials })[];
const forbidden = new Set<string>();
const deviations: string[] = [];

beforeAll(async () => {
  const known = rows.filter(({ kind }) => kind !== 'unknown');
  const streams = known.map(({ feedId, kind, assetClass, quoteAsset, status }) =>
    testStream(feedId, {
      hidden: kind === 'hidden',
      assetClass,
      quoteAsset,
      status,
      decommissionedAt: status === 'decommissioned' ? '2025-06-01T00:00:00.000000Z' : null,
    }),
  );
  service = await openService(streams, signerSets, () => now * 1_000);
  await service.append(
    rows.filter(({ hasReports }) => hasReports).map(({ feedId }) => report(feedId, now - 10, now - 1)),
  );
  const opened: (Reader & { readonly credentials: Credentials })[] = [];
  for (const reader of readers) {
    const at = '2025-10-01T00:00:00.000000Z';
    const changes = {
      ...(reader.locked === 'disabled' && { disabledAt: at }),
      ...(reader.locked === 'revoked' && { secrets: [{ id: 'one', sealed: '', createdAt: at, revokedAt: at }] }),
    };
    opened.push({ ...reader, credentials: await service.addAccount(reader.entitlements, changes) });
  }
  accounts = opened;
});
afterAll(() => service.close());

const mayRead = (reader: Reader, row: Row): boolean => row.kind !== 'unknown' && reader.may(row);

/** The whole answer, but for what differs from answer to answer: the date, the feed id asked for, and the request id, which also has a length. */
const blank = ({ status, headers, text, json }: Reply): string => {
  const { requestId = '', feedID = '' } = json as { readonly requestId?: string; readonly feedID?: string };
  const length = Number(headers['content-length']) - requestId.length;
  const blanked = { ...headers, date: '', 'x-request-id': '', 'content-length': length };
  return JSON.stringify([status, Object.entries(blanked), text.replace(requestId, '').replaceAll(feedID, '')]);
};

const deviate = (reader: Reader, what: string, { status, text }: Reply): void =>
  void deviations.push(`${reader.name}: ${what} gave ${status} ${text.slice(0, 120)}`);

/** Several accounts at a time. */
const forEachAccount = async (act: (account: (typeof accounts)[number]) => Promise<void>) => {
  for (let i = 0; i < accounts.length; i += 5) await Promise.all(accounts.slice(i, i + 5).map(act));
};

test('entitlements: every account reads exactly its own streams, on every route', async () => {
  let asked = 0;
  await forEachAccount(async (account) => {
    for (const [i, row] of rows.entries()) {
      for (const [j, { route, target, without }] of singles.entries()) {
        // In `npm test` each account asks for each stream on one route or two, and on each route for streams of every kind.
        if (!isFull && (i + j + accounts.indexOf(account)) % 4 > 0) continue;
        asked += 1;
        const reply = await service.call(target(row.feedId), { as: account.credentials });
        const expected = mayRead(account, row) ? (row.hasReports ? 200 : without) : 401;
        const code = account.locked ? 'unauthorized' : 'stream_not_accessible';
        const told = expected !== 401 || reply.json.code === code;
        if (reply.status !== expected || !told) deviate(account, `${route} of ${row.kind} ${row.feedId}`, reply);
        if (expected === 401 && !account.locked) forbidden.add(blank(reply));
        if (expected !== 401 && row.hasReports && /at|latest|bulk|page/.test(route) && !reply.text.includes(row.feedId))
          deviate(account, `${route} of ${row.feedId}, another stream`, reply);
      }
    }
  });
  tally({ deviations: deviations.length, 'requests that name one stream': asked });
  expect(deviations).toEqual([]);
});

test('entitlements: unknown, forbidden and hidden streams are one answer, byte for byte, on every route', () => {
  tally({ 'different answers to streams that may not be read': forbidden.size });
  expect([...forbidden].map((text) => JSON.parse(text)[0])).toEqual([401]);
});

const mixes = countOf(80, 2_000);

test(`entitlements: a bulk or a latest of several with one stream that may not be read fails whole, ${mixes} random mixes`, async () => {
  const roll = createRandom(seedOf(7));
  const seen = new Map<number, number>();
  await forEachAccount(async (account) => {
    const own = rows.filter((row) => mayRead(account, row));
    for (let mix = 0; mix < mixes / accounts.length; mix++) {
      // Mostly from what the account may read, or nearly every mix would be forbidden.
      const pool = own.length > 0 && mix % 3 > 0 ? own : rows;
      const chosen = Array.from({ length: 1 + roll(8) }, () => pool[roll(pool.length)] as Row); // below the length
      const stray = mix % 3 === 1 ? [rows[roll(rows.length)] as Row] : []; // below the length
      const asked = [...new Set([...chosen, ...stray])];
      const ids = asked.map(({ feedId }) => feedId);
      const target =
        mix % 2 === 0 ? `bulk?timestamp=${moment}&feedIDs=${ids.join(',')}` : `latest?feedIDs=${ids.join(',')}`;
      const reply = await service.call(`/api/v1/reports/${target}`, { as: account.credentials });
      const there = asked.filter(({ hasReports }) => hasReports).map(({ feedId }) => feedId);
      const expected = asked.every((row) => mayRead(account, row)) ? (there.length === asked.length ? 200 : 206) : 401;
      const given = reply.json.reports?.map(({ feedID }: { readonly feedID: string }) => feedID);
      const same = expected === 401 ? given === undefined : given?.join() === there.join();
      if (reply.status !== expected || !same) deviate(account, target, reply);
      seen.set(expected, (seen.get(expected) ?? 0) + 1);
    }
  });
  const countsOf = (status: number) => ({ [`mixes that must get ${status}`]: seen.get(status) ?? 0 });
  tally({ deviations: deviations.length, ...countsOf(200), ...countsOf(206), ...countsOf(401) });
  expect(deviations).toEqual([]);
  expect([...seen.keys()].sort()).toEqual([200, 206, 401]);
});

test('entitlements: candles or coverage of several streams with one that may not be read fail whole', async () => {
  const span = `from=${now - 60}&to=${now}`;
  await forEachAccount(async (account) => {
    const own = rows.filter((row) => mayRead(account, row)).slice(0, 8);
    const stray = rows.find((row) => !mayRead(account, row));
    for (const path of [`candles/bulk?${span}&resolution=60`, `coverage/bulk?${span}`]) {
      const ask = async (asked: readonly Row[], expected: number): Promise<void> => {
        const ids = asked.map(({ feedId }) => feedId);
        const target = `/api/v1/reports/${path}&feedIDs=${ids.join(',')}`;
        const reply = await service.call(target, { as: account.credentials });
        const given = reply.json.streams?.map(({ feedID }: { readonly feedID: string }) => feedID);
        expect([account.name, reply.status, given]).toEqual([
          account.name,
          expected,
          expected === 200 ? ids : undefined,
        ]);
      };
      if (own.length > 0) await ask(own, 200);
      if (stray !== undefined) await ask([...own, stray], 401);
    }
  });
});

test('entitlements: feeds lists what may be read; discovery lists public streams, and hidden ones to those who may and ask', async () => {
  const idsOf = (reply: Reply, key: string): readonly string[] =>
    reply.json.feeds.map((entry: Record<string, string>) => entry[key]).sort();
  const wanted = (keep: (row: Row) => boolean): readonly string[] =>
    rows
      .filter(keep)
      .map(({ feedId }) => feedId)
      .sort();
  for (const account of accounts) {
    const ask = (target: string) => service.call(target, { as: account.credentials });
    const [feeds, listed, notAsked, asked] = await Promise.all(
      ['/api/v1/feeds', '/api/v1/discovery', '/api/v1/discovery?hidden=false', '/api/v1/discovery?hidden=true'].map(
        ask,
      ),
    );
    if (account.locked) {
      for (const reply of [feeds, listed, notAsked, asked])
        expect([account.name, reply?.status]).toEqual([account.name, 401]);
      continue;
    }
    expect(idsOf(feeds as Reply, 'feedID'), account.name).toEqual(wanted((row) => mayRead(account, row)));
    for (const reply of [listed, notAsked])
      expect(idsOf(reply as Reply, 'feedId'), account.name).toEqual(wanted(isPublic));
    const visible = (row: Row) => isPublic(row) || (row.kind === 'hidden' && mayRead(account, row));
    expect(idsOf(asked as Reply, 'feedId'), account.name).toEqual(wanted(visible));
  }
  for (const query of ['', '?hidden=true', '?hidden=false'])
    expect(idsOf(await service.call(`/api/v1/discovery${query}`, { as: null }), 'feedId')).toEqual(wanted(isPublic));
});

test('entitlements: what is stored and cannot be understood is our fault: 500 to the reader, the cause to the log', async () => {
  const as = await service.addAccount(['public', 'written-by-hand']);
  for (const target of ['/api/v1/feeds', `/api/v1/reports/latest?feedID=${firstPublic}`]) {
    const reply = await service.call(target, { as });
    expect([reply.status, reply.json.code]).toEqual([500, 'internal_error']);
    expect(reply.text).not.toContain('written-by-hand');
    const told = service.events.at(-1);
    expect([told?.requestId, told?.code]).toEqual([reply.json.requestId, 'internal_error']);
    expect(told?.error).toMatchObject({
      message: `The entitlements stored for account ${as.userId} are invalid. Set them again with: sealpost account entitle.`,
      cause: { message: expect.stringContaining('written-by-hand') },
    });
  }
});
