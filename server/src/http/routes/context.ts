// Owns what a handler is given: values only. Sockets, headers and clocks stay in the pipeline.
import type { FeedId, QueryOf, RouteName } from '@sealpost/protocol';
import type { AdminSnapshot } from '../../store/admin-snapshot.ts';
import type { ReportStore } from '../../store/store.ts';
import type { Answer } from '../answer.ts';

export type RouteContext = {
  readonly reports: ReportStore;
  readonly admin: AdminSnapshot;
  /** What the caller may read; undefined for anonymous ones. */
  readonly readable: ReadonlySet<FeedId> | undefined;
  readonly nowMs: number;
  readonly retentionDays: number;
  readonly ifNoneMatch: string | undefined;
  /** Answered by `HEAD /`. */
  readonly origins: readonly string[];
  /** The one that the request names. */
  readonly origin: string | undefined;
};

/** A handler: from a parsed query to an answer. */
export type Handler<R extends RouteName> = (query: QueryOf<R>, context: RouteContext) => Answer | Promise<Answer>;
