// The real read API on a real store and socket, with a clock that tests set and an account that signs.
import { randomBytes } from 'node:crypto';
import { request as httpRequest } from 'node:http';
import { type FeedId, type SignerSets, type Stream, signRequest } from '@sealpost/protocol';
import { createLongWork } from '../../server/src/access/long-work.ts';
import { createSecretBox } from '../../server/src/access/secrets.ts';
import { onlyStreamsOf } from '../../server/src/access/streams-of-network.ts';
import { createUsedSignatures } from '../../server/src/access/used-signatures.ts';
import { type ApiParts, type ApiRules, createApi } from '../../server/src/http/api.ts';
import type { RequestEvent } from '../../server/src/http/pipeline.ts';
import { openHttpServer } from '../../server/src/http/server.ts';
import type { LiveEvent } from '../../server/src/live/connections.ts';
import { type LiveRules, openLive } from '../../server/src/live/live.ts';
import { openAdminView } from '../../server/src/store/admin-snapshot.ts';
import type { Account, StoredReport } from '../../server/src/store/store.ts';
import { createOpenApiWatch, type Exchange } from './openapi-check.ts';
import { act, openRunningIngest } from './running-ingest.ts';

export type Credentials = { readonly userId: string; readonly secret: string };

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into answers whose shape is what they test
  readonly json: any;
};

export type Service = {
  readonly url: string;
  readonly store: Awaited<ReturnType<typeof openRunningIngest>>['store'];
  readonly events: readonly RequestEvent[];
  readonly liveEvents: readonly LiveEvent[];
  /** Adds an account with these entitlements; resolves when the service has seen it. */
  readonly addAccount: (entitlements: readonly string[], changes?: Partial<Account>) => Promise<Credentials>;
  /** Gives the account another secret and revokes those before; resolves when the service has seen it. */
  readonly rotateSecret: (account: Credentials) => Promise<Credentials>;
  readonly append: (reports: readonly StoredReport[]) => Promise<void>;
  /** A signed request, unless `as` is null. Throws when the answer is not as the OpenAPI document says. */
  readonly call: (target: string, options?: CallOptions) => Promise<Reply>;
  /** Ends what is under way within a time, and closes. */
  readonly drain: (deadlineMs: number) => Promise<void>;
  /** Throws when any answer, whoever asked, was not as the OpenAPI document says. */
  readonly close: () => Promise<void>;
};

export type CallOptions = {
  readonly as?: Credentials | null;
  readonly method?: string;
  /** Replaces or adds headers; undefined leaves one out. */
  readonly headers?: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** What is signed instead of the target. */
  readonly signed?: string;
  readonly body?: string;
};

/** What the handlers of routes wait for. */
export type ReadParts = Pick<ApiParts, 'store' | 'longWork' | 'useSignature'>;

export const defaultApiRules: ApiRules = {
  requestsPerSecond: 0,
  anonymousRequestsPerSecond: 0,
  publicRequestsPerSecond: 0,
  failuresPerSecond: 0,
  trustedProxies: new Set(),
  feedIdsMax: 100,
  retentionDays: 30,
  skewMaxMs: 5_000,
  origins: [],
  network: 'testnet',
  version: '0.0.0',
};

const defaultLiveRules = { socketsPerAccount: 20, liveBufferBytesMax: 1_048_576, keepAliveMs: 10_000 };

export const openService = async (
  streams: readonly Stream[],
  signerSets: SignerSets,
  nowMs: () => number,
  rules: Partial<ApiRules & LiveRules> = {},
  monotonicMs: () => number = () => performance.now(),
  /** Puts itself between the routes and what they read. */
  between: (parts: ReadParts) => ReadParts = (parts) => parts,
): Promise<Service> => {
  const running = await openRunningIngest(streams, signerSets, nowMs);
  const admin = await openAdminView(running.store.admin, (event) => {
    if (event.kind === 'adminReloadFailed') throw event.error;
  });
  const view = onlyStreamsOf(admin, rules.network ?? defaultApiRules.network);
  const box = createSecretBox(randomBytes(32));
  const events: RequestEvent[] = [];
  const liveEvents: LiveEvent[] = [];
  const longWork = createLongWork(monotonicMs);
  const live = await openLive({
    store: running.store,
    view,
    rules: { ...defaultApiRules, ...defaultLiveRules, ...rules },
    longWork,
    nowMs,
    monotonicMs,
    observe: (event) => void liveEvents.push(event),
    onTrouble: (error) => {
      throw error;
    },
  });
  const useSignature = createUsedSignatures({ ...defaultApiRules, ...defaultLiveRules, ...rules }, monotonicMs);
  const { handle, newRequestId } = createApi({
    ...between({ store: running.store, longWork, useSignature }),
    view,
    box,
    rules: { ...defaultApiRules, ...rules },
    nowMs,
    monotonicMs,
    isDraining: () => false,
    load: { begin: () => 0 },
    observe: (event) => void (event.kind === 'request' && events.push(event)),
    live: live.handlers,
  });
  const openApi = createOpenApiWatch();
  // All tests come from one address: it counts as a proxy's, which has no limits.
  const connections = { addressOf: () => undefined };
  const listener = await openHttpServer(
    { host: '127.0.0.1', port: 0, connections },
    openApi.watch(handle),
    newRequestId,
  );
  const nextReload = (): Promise<void> =>
    new Promise((resolve) => {
      const stop = view.onReload(() => {
        stop();
        resolve();
      });
    });
  const rotateSecret: Service['rotateSecret'] = async ({ userId }) => {
    const secret = randomBytes(24).toString('base64url');
    const at = '2026-01-02T00:00:00.000000Z';
    const added = {
      id: randomBytes(4).toString('hex'),
      sealed: box.seal(userId, secret),
      createdAt: at,
      revokedAt: null,
    };
    const rotated = ([account]: readonly (Account | undefined)[]) => {
      const { secrets, ...rest } = account as Account; // it was added before
      return [{ ...rest, secrets: [...secrets.map((one) => ({ ...one, revokedAt: at })), added] }];
    };
    const seen = nextReload();
    await running.store.admin.update('account', [userId], rotated, act);
    await seen;
    return { userId, secret };
  };
  const addAccount: Service['addAccount'] = async (entitlements, changes = {}) => {
    const userId = crypto.randomUUID();
    const secret = randomBytes(24).toString('base64url');
    const secrets = [
      { id: 'one', sealed: box.seal(userId, secret), createdAt: '2026-01-01T00:00:00.000000Z', revokedAt: null },
    ];
    const seen = nextReload();
    await running.store.admin.update(
      'account',
      [userId],
      () => [
        {
          userId,
          name: 'test',
          createdAt: '2026-01-01T00:00:00.000000Z',
          disabledAt: null,
          secrets,
          entitlements,
          rateLimits: {},
          ...changes,
        },
      ],
      act,
    );
    await seen;
    return { userId, secret };
  };
  const first = await addAccount(['public']);
  const drain = async (deadlineMs: number): Promise<void> => {
    await Promise.all([listener.close(deadlineMs), live.drain(deadlineMs)]);
    view.close();
    await running.close();
    openApi.report();
  };
  return {
    url: listener.url,
    store: running.store,
    events,
    liveEvents,
    addAccount,
    rotateSecret,
    append: async (reports) => {
      const outcomes = await running.store.reports.append(reports);
      if (outcomes.some((outcome) => outcome !== 'stored')) throw new Error(`Not stored: ${outcomes}`);
    },
    call: async (target, options = {}) => {
      // Looked at on the wire too: a refusal before there is a request never passes the listener.
      const reply = await send(listener.url, target, { as: first, ...options }, nowMs(), openApi.take);
      openApi.report();
      return reply;
    },
    drain,
    close: () => drain(0),
  };
};

const send = (
  url: string,
  target: string,
  { as, method = 'GET', headers = {}, signed = target, body }: CallOptions,
  timestampMs: number,
  take: (exchange: Exchange) => void,
): Promise<Reply> => {
  const auth = as ? signRequest({ method, target: signed, userId: as.userId, timestampMs }, as.secret) : {};
  const all = Object.entries({ ...auth, ...headers }).filter(([, value]) => value !== undefined) as [
    string,
    string | string[],
  ][];
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const request = httpRequest(
      { hostname, port, path: target, method, headers: Object.fromEntries(all), agent: false },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const [status, received, text] = [response.statusCode ?? 0, response.headers, bytes.toString()];
          take({ method, target, status, headers: received, body: bytes });
          resolve({ status, headers: received as Record<string, string>, text, json: parse(text) });
        });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
};

const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** A report's feed id and time in a query. */
export const at = (feedId: FeedId, timestamp: number): string =>
  `/api/v1/reports?feedID=${feedId}&timestamp=${timestamp}`;
