// What a program that builds on the service may wrap around a node. A deployment has none of it. Whoever feeds a node submits lines to the `ingest` of its write path.
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Body } from '@sealpost/protocol';
import type { Intercept } from '../http/pipeline.ts';
import type { SignIn } from '../http/sign-in.ts';
import type { OpenInterceptor } from '../live/connections.ts';
import type { AdminView } from '../store/admin-snapshot.ts';
import type { StoreMemory } from '../store/open.ts';
import type { ReportStore } from '../store/store.ts';

export type NodeHooks = {
  /** The clock of reports: checks on ingest, retention, freshness, queries. Signatures, limits, /time and the log keep the real clock. */
  readonly reportNowMs?: () => number;
  /** Called when the public listener opens; what it returns runs around every request and live connection. */
  readonly wrap?: (node: WrappedNode) => Wrapping;
  /** What /status.json says in addition. */
  readonly status?: () => Partial<Body<'Status'>>;
  /** A path of the private listener, and everything below it. */
  readonly privateRoute?: {
    readonly path: `/${string}`;
    readonly handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  };
  /** Signs browsers in by a code. */
  readonly signIn?: SignIn;
  /** Where the store `memory:` is. */
  readonly memory?: StoreMemory;
  /** One of many nodes in another program: it leaves nothing in the process when it stops. */
  readonly isEmbedded?: true;
};

/** What a wrapping may read. */
export type WrappedNode = {
  readonly reports: ReportStore;
  readonly view: Pick<AdminView, 'current'>;
  readonly monotonicMs: () => number;
};

export type Wrapping = {
  readonly intercept: Intercept;
  readonly openInterceptor: OpenInterceptor;
  /** The node stops: ends everything that is kept waiting. */
  readonly drain: () => void;
};
