// Metrics of store failures: readers that are gone, corrupt records, unexpected ends, stopped following and writing, durability, threads that ended; and what
// retention deleted.
import { Counter, Gauge, type Registry } from 'prom-client';
import { replacedThreads } from '../runtime/threads.ts';
import { writingParts } from '../store/store.ts';
import type { StoreEvent } from '../store/store-event.ts';

type Told = Extract<
  StoreEvent,
  {
    kind:
      | 'staleReaders'
      | 'damaged'
      | 'endedUnexpectedly'
      | 'followingStopped'
      | 'followingResumed'
      | 'durabilityReduced'
      | 'durabilityRestored'
      | 'commitsLost'
      | 'writingStopped'
      | 'writingResumed'
      | 'threadEnded'
      | 'reportsDeleted';
  }
>;

export const createStoreMetrics = (registry: Registry): ((event: Told) => void) => {
  const gauge = (name: string, help: string, labelNames: readonly string[] = []) =>
    new Gauge({ name, help, labelNames: [...labelNames], aggregator: 'max', registers: [registry] });
  const staleReaders = gauge(
    'sealpost_store_stale_readers',
    'Readers of the store found gone at the last check, a minute ago at most.',
  );
  const damaged = gauge(
    'sealpost_store_damaged_records',
    'Damaged records of the store that were found since the start.',
  );
  const ends = gauge(
    'sealpost_unexpected_ends',
    'Processes in a row that ended without closing the store, before this one.',
  );
  const notFollowing = gauge(
    'sealpost_store_following_stopped',
    '1 while a process does not learn of new reports and changes in the database.',
  );
  const risky = gauge(
    'sealpost_store_durability_reduced',
    '1 while the database can lose what was acknowledged, or keeps commits waiting, by its settings or for lack of standbys.',
  );
  const lost = gauge(
    'sealpost_store_commits_lost',
    'How often since the start the database was found to have lost what it had acknowledged.',
  );
  const stopped = gauge(
    'sealpost_store_writing_stopped',
    '1 while a part of the store cannot be written to, by part.',
    ['part'],
  );
  for (const part of writingParts) stopped.set({ part }, 0);
  const replaced = new Counter({
    name: 'sealpost_threads_replaced_total',
    help: 'Threads that ended and were replaced, by what they do.',
    labelNames: ['thread'],
    registers: [registry],
  });
  for (const thread of replacedThreads) replaced.inc({ thread }, 0);
  const deleted = new Counter({
    name: 'sealpost_reports_deleted_total',
    help: 'Reports that retention deleted.',
    registers: [registry],
  });
  return (event) => {
    if (event.kind === 'staleReaders') staleReaders.set(event.count);
    else if (event.kind === 'damaged') damaged.set(event.total);
    else if (event.kind === 'endedUnexpectedly') ends.set(event.times);
    else if (event.kind === 'followingStopped') notFollowing.set(1);
    else if (event.kind === 'followingResumed') notFollowing.set(0);
    else if (event.kind === 'durabilityReduced') risky.set(1);
    else if (event.kind === 'durabilityRestored') risky.set(0);
    else if (event.kind === 'commitsLost') lost.inc();
    else if (event.kind === 'threadEnded') replaced.inc({ thread: event.thread });
    else if (event.kind === 'reportsDeleted') deleted.inc(event.count);
    else stopped.set({ part: event.part }, event.kind === 'writingStopped' ? 1 : 0);
  };
};
