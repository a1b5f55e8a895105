// What Sealpost offers beyond the specification, and whether the deployment has it. Absence is never a failure.

import type { CheckContext } from './check-context.ts';
import type { ReceivedAnswer } from './exchange.ts';
import { targets } from './sample.ts';

export type Extension = {
  readonly id: string;
  readonly title: string;
  readonly isPresent: (context: CheckContext) => Promise<boolean>;
};

const firstStream = async ({ sample }: CheckContext) => (await sample.reporting())[0];

/** The answer of the operation that most extensions show on. */
const latest = async (context: CheckContext, headers: Readonly<Record<string, string>> = {}): Promise<ReceivedAnswer> =>
  context.ask(targets.latest((await firstStream(context)).feedId), { headers });

const isOpen =
  (path: string, holds: (json: unknown) => boolean): Extension['isPresent'] =>
  async ({ ask }) => {
    const { status, json } = await ask(path, { signed: false });
    return status === 200 && holds(json);
  };

const miss = async (context: CheckContext): Promise<ReceivedAnswer> => {
  const { feedId, newest } = await firstStream(context);
  return context.ask(targets.at(feedId, newest.observationsTimestamp + 86_400));
};

const isExtended = async (
  context: CheckContext,
  rest: (feedId: string, second: number) => string,
): Promise<ReceivedAnswer> => {
  const { feedId, newest } = await firstStream(context);
  return context.ask(rest(feedId, newest.observationsTimestamp));
};

export const extensionTable: readonly Extension[] = [
  {
    id: 'request-id',
    title: 'X-Request-Id on every answer',
    isPresent: async (context) => (await latest(context)).headers['x-request-id'] !== undefined,
  },
  {
    id: 'rate-limit-headers',
    title: 'RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset',
    isPresent: async (context) => (await latest(context)).headers['ratelimit-limit'] !== undefined,
  },
  {
    id: 'error-codes',
    title: 'code and requestId in errors',
    isPresent: async (context) => {
      const { code, requestId } = Object((await miss(context)).json);
      return typeof code === 'string' && typeof requestId === 'string';
    },
  },
  {
    id: 'explained-misses',
    title: '404 with reason, previous and next if no report is valid at the time',
    isPresent: async (context) => {
      const { status, json } = await miss(context);
      return status === 404 && typeof Object(json).reason === 'string';
    },
  },
  {
    id: 'etag',
    title: 'ETag, and 304 for If-None-Match',
    isPresent: async (context) => {
      const { etag } = (await latest(context)).headers;
      if (etag === undefined) return false;
      const { feedId, newest } = await firstStream(context);
      const target = targets.at(feedId, newest.observationsTimestamp);
      const { headers } = await context.ask(target);
      return (
        headers.etag !== undefined &&
        (await context.ask(target, { headers: { 'If-None-Match': headers.etag } })).status === 304
      );
    },
  },
  {
    id: 'page-links',
    title: 'Link to the next page',
    isPresent: async (context) => {
      const { headers } = await isExtended(context, (feedId, second) => targets.page(feedId, second - 10, 1));
      return headers.link !== undefined;
    },
  },
  {
    id: 'bulk-missing',
    title: 'missing=true names the streams without a report',
    isPresent: async (context) => {
      const { json } = await isExtended(
        context,
        (feedId, second) => `${targets.bulk([feedId], second + 86_400)}&missing=true`,
      );
      return Array.isArray(Object(json).missing);
    },
  },
  {
    id: 'latest-many',
    title: 'latest for several streams',
    isPresent: async (context) =>
      (await isExtended(context, (feedId) => `/api/v1/reports/latest?feedIDs=${feedId}`)).status === 200,
  },
  {
    id: 'coverage',
    title: '/api/v1/reports/coverage',
    isPresent: async (context) =>
      (
        await isExtended(
          context,
          (feedId, second) => `/api/v1/reports/coverage?feedID=${feedId}&from=${second - 9}&to=${second}`,
        )
      ).status === 200,
  },
  {
    id: 'coverage-many',
    title: '/api/v1/reports/coverage/bulk',
    isPresent: async (context) =>
      (
        await isExtended(
          context,
          (feedId, second) => `/api/v1/reports/coverage/bulk?feedIDs=${feedId}&from=${second - 9}&to=${second}`,
        )
      ).status === 200,
  },
  {
    id: 'candles',
    title: '/api/v1/reports/candles',
    isPresent: async (context) =>
      (
        await isExtended(
          context,
          (feedId, second) => `/api/v1/reports/candles?feedID=${feedId}&from=${second - 60}&to=${second}&resolution=60`,
        )
      ).status === 200,
  },
  {
    id: 'candles-many',
    title: '/api/v1/reports/candles/bulk',
    isPresent: async (context) =>
      (
        await isExtended(
          context,
          (feedId, second) =>
            `/api/v1/reports/candles/bulk?feedIDs=${feedId}&from=${second - 60}&to=${second}&resolution=60`,
        )
      ).status === 200,
  },
  {
    id: 'event-stream',
    title: '/api/v1/reports/stream, server-sent events',
    // HEAD answers like GET, without events.
    isPresent: async (context) => {
      const { feedId } = await firstStream(context);
      return (await context.ask(`/api/v1/reports/stream?feedIDs=${feedId}`, { method: 'HEAD' })).status === 200;
    },
  },
  {
    id: 'cors',
    title: 'Access-Control-Allow-Origin for browsers',
    isPresent: async (context) => (await latest(context)).headers['access-control-allow-origin'] !== undefined,
  },
  {
    id: 'doubled-slash',
    title: 'A doubled leading slash is routed like one',
    isPresent: async (context) => (await isExtended(context, (feedId) => `/${targets.latest(feedId)}`)).status === 200,
  },
  {
    id: 'upper-case-feed',
    title: 'Feed IDs in upper case',
    isPresent: async (context) =>
      (await isExtended(context, (feedId) => targets.latest(`0x${feedId.slice(2).toUpperCase()}`))).status === 200,
  },
  { id: 'time', title: '/time', isPresent: isOpen('/time', (json) => typeof Object(json).serverTimeMs === 'number') },
  { id: 'signers', title: '/signers.json', isPresent: isOpen('/signers.json', (json) => typeof json === 'object') },
  {
    id: 'status',
    title: '/status.json',
    isPresent: isOpen('/status.json', (json) => typeof Object(json).ready === 'boolean'),
  },
  {
    id: 'openapi',
    title: '/openapi.json',
    isPresent: isOpen('/openapi.json', (json) => typeof Object(json).openapi === 'string'),
  },
];
