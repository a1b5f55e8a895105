// Events of a running store, for the log and the metrics.
import type { ThreadEnded } from '../runtime/threads.ts';
import type { Damage, WritingPart, WritingStop } from './store.ts';

/**
 * Events of a running store: the seconds that a durable append took; readers found gone whose places were freed; a damaged record,
 * once, with the number known by then; that the last process that wrote to it ended without closing it, and how many did so in a row; statements that
 * begin or end at a database, and why one failed; who answered a reading of history, a replica, or the primary because that is behind or away; that a
 * replica has served no read for a while, and that it serves again, once each; each failure to learn of what is new in a database once that has lasted for a while,
 * which is news the first time and when the reason is another one, and that it works again; that writing stopped, and that it works again, once each; that
 * the database can lose what was acknowledged, news as above, and that it no longer can; that a database lost what this process had read; that a thread
 * ended and is replaced; how many reports a round of retention deleted, all observed before a moment.
 */
export type StoreEvent =
  | { readonly kind: 'committed'; readonly seconds: number }
  | { readonly kind: 'staleReaders'; readonly count: number }
  | ({ readonly kind: 'damaged'; readonly total: number } & Damage)
  | { readonly kind: 'endedUnexpectedly'; readonly times: number }
  | { readonly kind: 'statements'; readonly change: 1 | -1 }
  | { readonly kind: 'statementFailed'; readonly reason: StatementFailure }
  | { readonly kind: 'historyRead'; readonly by: HistoryReader }
  | { readonly kind: 'replicaUnused'; readonly replica: string; readonly reason: string }
  | { readonly kind: 'replicaUsed'; readonly replica: string; readonly seconds: number }
  | { readonly kind: 'followingStopped'; readonly reason: string; readonly isNews: boolean }
  | { readonly kind: 'followingResumed'; readonly seconds: number }
  | ({ readonly kind: 'writingStopped' } & WritingStop)
  | { readonly kind: 'writingResumed'; readonly part: WritingPart; readonly seconds: number }
  | { readonly kind: 'durabilityReduced'; readonly reason: string; readonly isNews: boolean }
  | { readonly kind: 'durabilityRestored'; readonly seconds: number }
  | { readonly kind: 'commitsLost'; readonly reason: string }
  | { readonly kind: 'reportsDeleted'; readonly count: number; readonly endMs: number }
  | ThreadEnded;

/** Too many statements were waiting; no answer in time; the database rejected it or could not be reached. */
export const statementFailures = ['exhausted', 'late', 'away'] as const;
export type StatementFailure = (typeof statementFailures)[number];

export const historyReaders = ['replica', 'behind', 'away'] as const;
export type HistoryReader = (typeof historyReaders)[number];
