// Owns the read path put together: gate, pipeline and handlers over a store, as one request listener.
import { randomBytes } from 'node:crypto';
import type { RequestListener } from 'node:http';
import { createAuthenticator } from '../access/authenticate.ts';
import { createCallers } from '../access/callers.ts';
import { createRateLimiter } from '../access/rate-limit.ts';
import type { SecretBox } from '../access/secrets.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { Store } from '../store/store.ts';
import { createGate, type GateRules } from './gate.ts';
import { createPipeline, type Handlers, type RequestEvent } from './pipeline.ts';
import type { QueryRules } from './query.ts';
import { discovery } from './routes/discovery.ts';
import { feeds } from './routes/feeds.ts';
import { origins } from './routes/origins.ts';
import { reportAt } from './routes/report-at.ts';
import { reportBulk } from './routes/report-bulk.ts';
import { reportCandles } from './routes/report-candles.ts';
import { reportCoverage } from './routes/report-coverage.ts';
import { reportLatest } from './routes/report-latest.ts';
import { reportPage } from './routes/report-page.ts';
import { signers } from './routes/signers.ts';
import { time } from './routes/time.ts';

export type ApiRules = GateRules & QueryRules & { readonly skewMaxMs: number; readonly origins: readonly string[] };

export type ApiParts = {
  readonly store: Store;
  readonly view: AdminView;
  readonly box: SecretBox;
  readonly rules: ApiRules;
  readonly nowMs: () => number;
  readonly monotonicMs: () => number;
  readonly isDraining: () => boolean;
  readonly isOverloaded: () => boolean;
  readonly observe: (event: RequestEvent) => void;
};

const handlers: Handlers = {
  discovery,
  feeds,
  reportAt,
  reportLatest,
  reportBulk,
  reportPage,
  reportCoverage,
  reportCandles,
  origins,
  time,
  signers,
};

/** Accounts and addresses whose buckets are kept. */
const accountBucketsMax = 100_000;
const addressBucketsMax = 50_000;

/** Ids that are unique across processes without asking for randomness each time. */
const createRequestIds = (): (() => string) => {
  const prefix = randomBytes(6).toString('hex');
  let count = 0;
  return () => `${prefix}-${(count++).toString(36)}`;
};

export const createApi = (
  parts: ApiParts,
): { readonly handle: RequestListener; readonly newRequestId: () => string } => {
  const { store, view, box, rules, nowMs, monotonicMs } = parts;
  const callers = createCallers(view, box);
  const newRequestId = createRequestIds();
  const gate = createGate({
    authenticator: createAuthenticator(callers.callerOf, rules.skewMaxMs),
    accounts: createRateLimiter(accountBucketsMax),
    addresses: createRateLimiter(addressBucketsMax),
    rules,
    monotonicMs,
    readableOf: callers.readableOf,
  });
  const handle = createPipeline({
    handlers,
    gate,
    rules,
    nowMs,
    monotonicMs,
    newRequestId,
    isDraining: parts.isDraining,
    isOverloaded: parts.isOverloaded,
    contextOf: (readable, { ifNoneMatch }, now) => ({
      reports: store.reports,
      admin: view.current(),
      readable,
      nowMs: now,
      retentionDays: rules.retentionDays,
      ifNoneMatch,
      origins: rules.origins,
    }),
    observe: parts.observe,
  });
  return { handle, newRequestId };
};
