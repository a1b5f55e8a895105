// What a handler gets: values only. Sockets, headers and clocks stay in the pipeline, except for the connection that a live route takes over.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FeedId, QueryOf, RouteName } from '@sealpost/protocol';
import type { Client, LongWork } from '../../access/long-work.ts';
import type { AdminSnapshot } from '../../store/admin-snapshot.ts';
import type { ReportStore } from '../../store/store.ts';
import type { Answer } from '../answer.ts';

export type RouteContext = {
  readonly reports: ReportStore;
  readonly admin: AdminSnapshot;
  /** What the caller may read; undefined for anonymous ones. */
  readonly readable: ReadonlySet<FeedId> | undefined;
  /** Who asks; empty for anonymous ones. */
  readonly userId: string;
  /** How answers that take long are made. */
  readonly longWork: LongWork;
  /** Who waits for the answer. */
  readonly client: Client;
  readonly nowMs: number;
  /** The time of reports: `nowMs` unless a hook sets it. */
  readonly reportNowMs: number;
  readonly retentionDays: number;
  readonly ifNoneMatch: string | undefined;
  /** Answered by `HEAD /`. */
  readonly origins: readonly string[];
  /** The one that the request names. */
  readonly origin: string | undefined;
  /** On live routes alone. */
  readonly live?: LiveContext;
};

/** What a connection has to know that outlives its request. */
export type LiveContext = {
  readonly requestId: string;
  readonly userId: string;
  /** The secret that signed the request. */
  readonly secretId: string;
  /** Where an interrupted event stream resumes, as sent. */
  readonly lastEventId: string | undefined;
  /** The connection that asks to be upgraded; absent from a plain request. */
  readonly upgrade: Upgrade | undefined;
};

/** A connection that its parser released: `head` is what came after the request. */
export type Upgrade = { readonly request: IncomingMessage; readonly socket: Duplex; readonly head: Buffer };

/** A handler: from a parsed query to an answer. */
export type Handler<R extends RouteName> = (query: QueryOf<R>, context: RouteContext) => Answer | Promise<Answer>;
