// What the documents let fail while something happens to a deployment: whose requests, how, and for how long. Anything else is a defect.
import type { Allowance, FailingKind } from './failures.ts';

const signedReads: readonly FailingKind[] = ['direct latest', 'direct at', 'direct page', 'direct bulk'];
const probes: readonly FailingKind[] = ['direct livez', 'direct readyz'];

/** A node of the first deployment that was stopped or killed, asked without the balancer. */
export const stoppedNode: Allowance = {
  kinds: [...signedReads, ...probes, 'direct ingest'],
  failure: /^node 1: (failed |503 +\{"ready":false,"reasons":\["draining|503 store_stopped )/,
  forMs: 2_000,
  why: 'operating.md, exit codes: /readyz fails at once, new connections are refused; POST /ingest: 503, retry',
};

/** Through the balancer: an answer that a node had begun when it was killed. */
export const cutAnswer: Allowance = {
  kinds: ['bare', 'published', 'published stream'],
  failure: /ECONNRESET|socket hang up|terminated|aborted|\b502 /,
  forMs: 5_000,
  why: 'deploy/haproxy.cfg: requests that were not answered at all are retried, a cut answer is not',
};

/** History, writing and readiness while no database takes writes. */
export const withoutDatabase: Allowance = {
  kinds: [
    'sdk',
    'published',
    'published stream',
    'direct at',
    'direct page',
    'direct bulk',
    'direct ingest',
    'direct readyz',
  ],
  failure:
    /\b503 (store_unavailable|store_outcome_unknown|APIError: The storage is unavailable| *\{"ready":false,"reasons":\["(store|writing))/,
  forMs: 5_000,
  why: 'operating.md, PostgreSQL: while the database is unavailable, history and ingest answer 503, /readyz fails with `store`',
};

/** A node whose clock is 30 s ahead rejects what others sign. */
export const wrongClock: Allowance = {
  kinds: ['sdk', 'bare', 'socket', 'events', 'published', 'published stream', ...signedReads],
  failure: /\b400 (clock_skew |APIError: X-Authorization-Timestamp is )/,
  forMs: 2_000,
  why: 'protocol.md, authentication: a timestamp more than 5 s from server time is clock_skew',
};
