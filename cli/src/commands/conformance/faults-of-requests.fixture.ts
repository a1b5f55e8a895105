// Servers that are wrong in what they accept, and whom they show what: each row is one fault and the checks that find it.
import { dateFilters, nameFilters } from '@sealpost/protocol';
import {
  type AnswerChange,
  authOf,
  type Fault,
  isSignedOver,
  type Passing,
  type Reply,
  type RequestChange,
  resign,
  type World,
} from './broken-server.fixture.ts';
import { sampleFeedIds } from './live-sample.fixture.ts';

export const paths = {
  latest: /^\/api\/v1\/reports\/latest\b/,
  at: /^\/api\/v1\/reports\?/,
  bulk: /^\/api\/v1\/reports\/bulk\b/,
  page: /^\/api\/v1\/reports\/page\b/,
  reports: /^\/api\/v1\/reports\b/,
  discovery: /^\/api\/v1\/discovery\b/,
  feeds: /^\/api\/v1\/feeds\b/,
  ws: /^\/api\/v[12]\/ws\b/,
} as const;

export const reply = (status: number, body: unknown = { error: 'Broken on purpose.' }): Reply => ({
  status,
  headers: { 'content-type': 'application/json' },
  text: JSON.stringify(body),
});

/** The value of an argument. */
export const argumentOf = ({ target }: Passing, name: string): string | null =>
  new URL(target, 'http://broken').searchParams.get(name);

/** Changes the query of a request, and signs it anew if it was signed correctly. */
export const rewrite = (request: Passing, world: World, change: (query: URLSearchParams) => void): undefined => {
  const isFine = isSignedOver(request, world);
  const url = new URL(request.target, 'http://broken');
  change(url.searchParams);
  request.target = `${url.pathname}${url.search}`;
  if (isFine) resign(request, world);
};

/** Changes the JSON of successful answers. */
export const on =
  // biome-ignore lint/suspicious/noExplicitAny: faults reach into answers
    (path: RegExp, change: (body: any, request: Passing, world: World) => unknown): AnswerChange =>
    async (answer, request, world) => {
      if (!path.test(request.target) || (answer.status !== 200 && answer.status !== 206) || answer.text === '') return;
      const body = JSON.parse(answer.text);
      answer.text = JSON.stringify((await change(body, request, world)) ?? body);
    };

/** Accepts requests that it must not. */
const accept =
  (isAccepted: (request: Passing, world: World) => boolean): RequestChange =>
  (request, world) =>
    isAccepted(request, world) ? resign(request, world) : undefined;

/** Answers requests that it must not, or not so. */
export const refuse =
  (status: number, isRefused: (request: Passing, world: World) => boolean): RequestChange =>
  (request, world) =>
    isRefused(request, world) ? reply(status) : undefined;

/** Answers with another status. */
export const restate =
  (status: number, isMeant: (answer: Reply, request: Passing, world: World) => boolean): AnswerChange =>
  (answer, request, world) => {
    if (isMeant(answer, request, world)) answer.status = status;
  };

const isAnonymous = (request: Passing): boolean => Object.values(authOf(request)).every((value) => value === undefined);
const isWellFormed = (request: Passing): boolean => {
  const { userId = '', timestamp = '', signature = '' } = authOf(request);
  return /^[\da-f-]{36}$/.test(userId) && /^\d{13}$/.test(timestamp) && /^[\da-f]{64}$/.test(signature);
};
const aheadMs = (request: Passing): number => Number(authOf(request).timestamp) - Date.now();

const acceptedRequests: readonly Fault[] = [
  {
    name: 'any secret is accepted',
    fails: ['signing.wrong-secret', 'signing.zero', 'discovery.wrong-signature', 'websocket.wrong-secret'],
    request: accept(isWellFormed),
  },
  {
    name: 'requests without headers are served',
    fails: ['latest', 'at', 'bulk', 'page', 'feeds'].map((group) => `${group}.anonymous`).concat('websocket.unsigned'),
    request: accept((request) => isAnonymous(request) && !paths.discovery.test(request.target)),
  },
  ...['userid', 'timestamp', 'signature'].map(
    (part): Fault => ({
      name: `a missing ${part} is 401`,
      fails: [`signing.missing-${part}`],
      answer: restate(
        401,
        (_, request) => authOf(request)[part === 'userid' ? 'userId' : (part as 'timestamp')] === undefined,
      ),
    }),
  ),
  {
    name: 'malformed headers are 403',
    fails: ['signing.malformed-userid', 'signing.malformed-timestamp', 'signing.malformed-signature'],
    request: refuse(403, (request) => !isAnonymous(request) && !isWellFormed(request)),
  },
  {
    name: 'the method is not signed',
    fails: ['signing.other-method'],
    request: accept((request, world) => isSignedOver(request, world, { method: 'POST' })),
  },
  {
    name: 'the path is not signed',
    fails: ['signing.other-path'],
    request: accept((request, world) => isSignedOver(request, world, { target: '/api/v1/feeds' })),
  },
  {
    name: 'the query is not signed',
    fails: ['signing.query'],
    request: accept((request, world) => isSignedOver(request, world, { target: request.target.split('?')[0] ?? '' })),
  },
  {
    name: 'arguments are sorted before the signature is verified',
    fails: ['signing.query-order-signed'],
    request: accept((request, world) => {
      const [path, query = ''] = request.target.split('?');
      return isSignedOver(request, world, { target: `${path}?${query.split('&').reverse().join('&')}` });
    }),
  },
  {
    name: 'the target is decoded before the signature is verified',
    fails: ['signing.encoding'],
    request: refuse(401, ({ target }) => /%2c/i.test(target)),
  },
  {
    name: 'the body is not signed',
    fails: ['signing.body-hash'],
    request: accept((request, world) => isSignedOver(request, world, { body: 'x' })),
  },
  {
    name: 'the target is signed in any case',
    fails: ['signing.case'],
    request: accept((request, world) => isSignedOver(request, world, { target: request.target.replace('r', 'R') })),
  },
  {
    name: 'the right secret is accepted in any name',
    fails: ['signing.other-user'],
    request: accept((request, world) => aheadMs(request) < 5_000 && isSignedOver(request, world)),
  },
  {
    name: 'the user ID is read from elsewhere',
    fails: ['signing.other-user'],
    request: accept((request, world) => isSignedOver(request, world, { userId: world.user.userId })),
  },
  {
    name: 'an unknown user is 404',
    fails: ['signing.unknown-user'],
    request: refuse(404, (request, { user }) => isWellFormed(request) && authOf(request).userId !== user.userId),
  },
  {
    name: 'lower-case header names are ignored',
    fails: ['signing.header-case'],
    request: refuse(400, ({ rawNames }) => rawNames.includes('authorization')),
  },
  {
    name: 'a Content-Type is refused',
    fails: ['signing.content-type'],
    request: refuse(415, ({ headers }) => headers['content-type'] !== undefined),
  },
  {
    name: 'a User-Agent is required',
    fails: ['signing.no-user-agent'],
    request: refuse(403, ({ headers }) => headers['user-agent'] === undefined),
  },
  {
    name: 'a timestamp 6 s in the future is accepted',
    fails: ['clock.future'],
    request: accept(
      (request, world) => aheadMs(request) <= 6_000 && aheadMs(request) > 0 && isSignedOver(request, world),
    ),
  },
  {
    name: 'a timestamp 6 s in the past is accepted',
    fails: ['clock.stale'],
    request: accept(
      (request, world) => aheadMs(request) >= -6_000 && aheadMs(request) < 0 && isSignedOver(request, world),
    ),
  },
  {
    name: 'a timestamp of any age opens a WebSocket',
    fails: ['websocket.stale'],
    request: accept((request, world) => paths.ws.test(request.target) && isSignedOver(request, world)),
  },
  {
    name: 'only 4 s of skew are accepted',
    fails: ['clock.behind', 'clock.ahead'],
    request: refuse(400, (request) => Math.abs(aheadMs(request)) > 4_000),
  },
  {
    name: 'a timestamp in seconds is accepted',
    fails: ['clock.seconds'],
    request: accept((request) => /^\d{10}$/.test(authOf(request).timestamp ?? '')),
  },
  {
    name: 'a stream that does not exist is 404',
    fails: ['latest', 'at', 'bulk', 'page'].map((group) => `${group}.unknown-stream`),
    answer: restate(404, ({ status }, { target }) => status === 401 && paths.reports.test(target)),
  },
  {
    name: 'wrong arguments are 422',
    fails: [
      'latest.no-feed',
      'at.malformed-timestamp',
      'at.negative-timestamp',
      'bulk.no-feeds',
      'page.malformed-limit',
    ],
    answer: restate(422, ({ status }, { target }) => status === 400 && paths.reports.test(target)),
  },
  {
    name: 'POST is answered like GET',
    fails: ['errors.read-only'],
    request: (request, { ask }) => (request.method === 'POST' ? ask(request.target) : undefined),
  },
  {
    name: 'a long URL is 500',
    fails: ['errors.long-url', 'service.server-errors'],
    request: refuse(500, ({ target }) => target.length > 8_000),
  },
  {
    name: 'an unknown path is a web page',
    fails: ['errors.unknown-path'],
    answer: restate(200, ({ status }, { target }) => status === 404 && !paths.reports.test(target)),
  },
  {
    name: 'a WebSocket ignores streams that do not exist',
    fails: ['websocket.unknown-stream'],
    request: (request, world) =>
      paths.ws.test(request.target)
        ? rewrite(request, world, (query) =>
            query.set(
              'feedIDs',
              `${query.get('feedIDs')}`
                .split(',')
                .filter((id) => !id.includes('dead'))
                .join(','),
            ),
          )
        : undefined,
  },
  {
    name: 'an unknown origin is any origin',
    fails: ['origins.unknown'],
    request: ({ headers }) => {
      if (headers['x-cll-origin'] === 'no-such-origin') headers['x-cll-origin'] = undefined;
    },
  },
];

const isDiscovery = ({ target }: Passing): boolean => paths.discovery.test(target);
/** Changes what anonymous, or what signed requests are shown. */
const listed = (isOpen: boolean, change: (feeds: readonly Listed[]) => readonly Listed[]): AnswerChange =>
  on(paths.discovery, ({ feeds }, request) => (isAnonymous(request) === isOpen ? { feeds: change(feeds) } : undefined));
type Listed = Readonly<Record<string, unknown>>;
const withoutEth = (feeds: readonly Listed[]): readonly Listed[] =>
  feeds.filter(({ baseAsset }) => baseAsset !== 'ETH');

/** Ignores an argument of discovery. */
const ignore =
  (...names: readonly string[]): RequestChange =>
  (request, world) =>
    isDiscovery(request)
      ? rewrite(request, world, (query) => {
          for (const name of names) query.delete(name);
        })
      : undefined;

const shownStreams: readonly Fault[] = [
  ...Object.keys(nameFilters).map(
    (name): Fault => ({
      name: `${name} is ignored`,
      fails: [`discovery.${name.replaceAll('_', '-')}`],
      request: ignore(name),
    }),
  ),
  ...Object.keys(dateFilters).map(
    (name): Fault => ({
      name: `${name}_before is ignored`,
      fails: [`discovery.${name.replaceAll('_', '-')}`],
      request: ignore(`${name}_before`),
    }),
  ),
  {
    name: 'a filter leaves out a stream',
    fails: ['discovery.status'],
    answer: on(paths.discovery, ({ feeds }, request) =>
      argumentOf(request, 'status') === null ? undefined : { feeds: feeds.slice(1) },
    ),
  },
  {
    name: 'of several filters the first counts',
    fails: ['discovery.combined'],
    request: (request, world) =>
      argumentOf(request, 'base_asset') === null ? undefined : ignore('status')(request, world),
  },
  {
    name: 'anonymous discovery lists hidden streams',
    fails: ['discovery.hidden-anonymous', 'discovery.public'],
    request: (request, { ask }) =>
      isDiscovery(request) && isAnonymous(request) ? ask('/api/v1/discovery?hidden=true') : undefined,
  },
  {
    name: 'anonymous discovery lists hidden streams when asked to',
    fails: ['discovery.hidden-public'],
    request: (request, { ask }) =>
      isDiscovery(request) && isAnonymous(request) && argumentOf(request, 'hidden') === 'true'
        ? ask(request.target)
        : undefined,
  },
  {
    name: 'anonymous discovery leaves out a public stream',
    fails: ['discovery.public'],
    answer: listed(true, withoutEth),
  },
  {
    name: 'signed discovery leaves out a public stream',
    fails: ['discovery.public'],
    answer: listed(false, withoutEth),
  },
  {
    name: 'discovery leaves out a public stream',
    fails: ['discovery.readable'],
    answer: on(paths.discovery, ({ feeds }) => ({ feeds: withoutEth(feeds) })),
  },
  {
    name: 'signed discovery always lists hidden streams',
    fails: ['discovery.public', 'discovery.hidden-false'],
    request: (request, world) =>
      isDiscovery(request) && !isAnonymous(request)
        ? rewrite(request, world, (query) => query.set('hidden', 'true'))
        : undefined,
  },
  {
    name: 'hidden=false is true',
    fails: ['discovery.hidden-false'],
    request: (request, world) =>
      isDiscovery(request) && argumentOf(request, 'hidden') === 'false'
        ? rewrite(request, world, (query) => query.set('hidden', 'true'))
        : undefined,
  },
  {
    name: 'discovery lists hidden streams to everyone',
    fails: ['discovery.hidden-anonymous'],
    options: ['--hidden', sampleFeedIds.hidden],
    request: (request, { ask }) => (isDiscovery(request) ? ask('/api/v1/discovery?hidden=true') : undefined),
  },
  { name: 'hidden is ignored', fails: ['discovery.readable', 'discovery.hidden-malformed'], request: ignore('hidden') },
  {
    name: 'discovery requires a signature',
    fails: ['discovery.anonymous'],
    request: refuse(401, (request) => isDiscovery(request) && isAnonymous(request)),
  },
  {
    name: 'entries have no status',
    fails: ['discovery.entry'],
    answer: on(paths.discovery, ({ feeds }) => {
      for (const feed of feeds) feed.status = undefined;
    }),
  },
  {
    name: 'entries have feed IDs in upper case',
    fails: ['discovery.entry'],
    answer: on(paths.discovery, ({ feeds }) => {
      for (const feed of feeds) feed.feedId = `0x${feed.feedId.slice(2).toUpperCase()}`;
    }),
  },
  {
    name: 'a stream is listed twice',
    fails: ['discovery.entry'],
    answer: on(paths.discovery, ({ feeds }) => ({ feeds: [...feeds, feeds[0]] })),
  },
  {
    name: '/api/v1/feeds leaves out a readable stream',
    fails: ['feeds.complete'],
    answer: on(paths.feeds, ({ feeds }) => ({ feeds: feeds.slice(1) })),
  },
  {
    name: '/api/v1/feeds lists a stream that is not readable',
    fails: ['discovery.readable'],
    answer: on(paths.feeds, ({ feeds }) => ({ feeds: [...feeds, { feedID: `0x0003${'dead'.repeat(15)}` }] })),
  },
  {
    name: '/api/v1/feeds names IDs as discovery does',
    fails: ['feeds.shape'],
    answer: on(paths.feeds, ({ feeds }) => ({
      feeds: feeds.map(({ feedID }: { feedID: string }) => ({ feedId: feedID, feedID: feedID.toUpperCase() })),
    })),
  },
];

export const requestFaults: readonly Fault[] = [...acceptedRequests, ...shownStreams];
