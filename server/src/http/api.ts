// Composes the read path: admission control, pipeline and handlers over a store, as one request listener.
import { randomUUID } from 'node:crypto';
import type { NetworkType } from '@sealpost/protocol';
import { createAuthenticator } from '../access/authenticate.ts';
import { createCallers, type SecretNotOpened } from '../access/callers.ts';
import type { LongWork } from '../access/long-work.ts';
import { bucketsMax, createRateLimiter, type RateLimiter } from '../access/rate-limit.ts';
import type { SecretBox } from '../access/secrets.ts';
import type { UseSignature } from '../access/used-signatures.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Store } from '../store/store.ts';
import { type AdmissionRules, createAdmissionControl } from './admission-control.ts';
import type { FindFile } from './explorer.ts';
import type { Load } from './overload.ts';
import {
  createPipeline,
  type Handlers,
  type Intercept,
  type LiveHandlers,
  type Pipeline,
  type RequestEvent,
} from './pipeline.ts';
import { createQueryReader, type QueryRules } from './query.ts';
import { createDiscoveryRoute } from './routes/discovery.ts';
import { createDocsRoute } from './routes/docs.ts';
import { feeds } from './routes/feeds.ts';
import { createOpenApiRoute } from './routes/openapi.ts';
import { origins } from './routes/origins.ts';
import { reportAt } from './routes/report-at.ts';
import { reportBulk } from './routes/report-bulk.ts';
import { createCandlesManyRoute, reportCandles } from './routes/report-candles.ts';
import { createCoverageManyRoute, reportCoverage } from './routes/report-coverage.ts';
import { createLatestManyRoute, reportLatest } from './routes/report-latest.ts';
import { reportPage } from './routes/report-page.ts';
import { signers } from './routes/signers.ts';
import { createStatusRoute, type StatusParts } from './routes/status.ts';
import { time } from './routes/time.ts';

export type ApiRules = AdmissionRules &
  QueryRules & {
    readonly skewMaxMs: number;
    readonly origins: readonly string[];
    /** For /status.json. */
    readonly network: NetworkType;
    /** The server's version, for /status.json. */
    readonly version: string;
  };

export type ApiParts = {
  readonly store: Store;
  /** Of the streams of this deployment's network. */
  readonly view: AdminView;
  readonly box: SecretBox;
  readonly rules: ApiRules;
  readonly nowMs: () => number;
  /** The time of reports, where it is not the clock's. */
  readonly reportNowMs?: (() => number) | undefined;
  readonly monotonicMs: () => number;
  /** What /status.json says in addition. */
  readonly status?: StatusParts['further'];
  readonly isDraining: () => boolean;
  readonly load: Load;
  readonly longWork: LongWork;
  readonly observe: (event: RequestEvent | SecretNotOpened) => void;
  /** Hears which secret signed a request that passed. */
  readonly onSigned?: (userId: string, secretId: string, nowMs: number) => void;
  /** Does this process terminate TLS? */
  readonly isTls?: boolean;
  readonly live: LiveHandlers;
  /** The explorer's files; none when absent. */
  readonly findFile?: FindFile | undefined;
  /** Runs around every request. */
  readonly intercept?: Intercept | undefined;
  /** Those that this process shares with others; its own when absent. */
  readonly limiters?: Limiters;
  readonly useSignature: UseSignature;
};

/** One for accounts, one for addresses. */
export type Limiters = { readonly accounts: RateLimiter; readonly addresses: RateLimiter };

/** Handlers that are the same in every deployment. */
const fixedHandlers = {
  feeds,
  reportLatest,
  reportAt,
  reportPage,
  reportBulk,
  reportCoverage,
  reportCandles,
  origins,
  time,
  signers,
} satisfies Partial<Handlers>;

const createHandlers = ({ rules, isDraining, monotonicMs, live, status, findFile }: ApiParts): Handlers => ({
  ...fixedHandlers,
  discovery: createDiscoveryRoute(),
  reportLatestMany: createLatestManyRoute(),
  reportCandlesMany: createCandlesManyRoute(monotonicMs),
  reportCoverageMany: createCoverageManyRoute(monotonicMs),
  status: createStatusRoute({ rules, isDraining, monotonicMs, further: status }),
  openapi: createOpenApiRoute(rules),
  docs: createDocsRoute(findFile),
  ...live,
});

/** Random: a counter would tell every client how many requests the others send. Node draws the randomness of 128 at once. */
const newRequestId = (): string => randomUUID();

export function createApi(parts: ApiParts): Pipeline & { readonly newRequestId: () => string } {
  const { store, view, box, rules, nowMs, monotonicMs } = parts;
  const callers = createCallers(view, box, parts.observe, monotonicMs);
  const admission = createAdmissionControl({
    authenticator: createAuthenticator(callers.callerOf, rules.skewMaxMs, parts.onSigned),
    accounts: parts.limiters?.accounts ?? createRateLimiter(bucketsMax.accounts),
    addresses: parts.limiters?.addresses ?? createRateLimiter(bucketsMax.addresses),
    rules,
    useSignature: parts.useSignature,
    monotonicMs,
    readableOf: callers.readableOf,
  });
  const pipeline = createPipeline({
    handlers: createHandlers(parts),
    admission,
    readQuery: createQueryReader(rules),
    findFile: parts.findFile,
    nowMs,
    reportNowMs: parts.reportNowMs ?? nowMs,
    monotonicMs,
    newRequestId,
    isDraining: parts.isDraining,
    load: parts.load,
    contextOf: (caller, readable, { ifNoneMatch, origin }, times, client) => ({
      reports: store.reports,
      admin: view.current(),
      readable,
      userId: caller?.userId ?? '',
      longWork: parts.longWork,
      client,
      nowMs: times.nowMs,
      reportNowMs: times.reportNowMs,
      retentionDays: rules.retentionDays,
      ifNoneMatch,
      origins: rules.origins,
      origin,
    }),
    observe: parts.observe,
    isTls: parts.isTls ?? false,
    intercept: parts.intercept,
  });
  return { ...pipeline, newRequestId };
}
