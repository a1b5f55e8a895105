// Lines of the log about the store: damage, writing, threads, what retention deleted, the database and its replicas.
import type { StoreEvent } from '../store/store-event.ts';
import { cut, type Line, roundMs } from './log-line.ts';

const damageLine = (found: Damaged): Line => {
  if (found.kind === 'endedUnexpectedly') {
    const { kind: event, times } = found;
    const message = `The last process that wrote to this store ended unexpectedly${times > 1 ? `, ${times} times in a row` : ''}. Run: sealpost store verify.`;
    return { level: times > 1 ? 'error' : 'warn', fields: { event, times, message }, complaint: 'ended_unexpectedly' };
  }
  const { kind: event, table, key, reason, feedId = null } = found;
  const message = 'A stored record is damaged and left out. Run: sealpost store verify.';
  return {
    level: 'error',
    fields: { event, table, key: cut(key), reason: cut(reason), feedId, message },
    complaint: table,
  };
};

type Damaged = Extract<StoreEvent, { kind: 'damaged' | 'endedUnexpectedly' }>;
type Writing = Extract<StoreEvent, { kind: 'writingStopped' | 'writingResumed' | 'threadEnded' }>;

const databaseLine = ({
  kind: event,
  ...fields
}: Extract<StoreEvent, { kind: 'statements' | 'statementFailed' | 'historyRead' }>): Line => ({
  level: 'debug',
  fields: { event, ...fields },
});

const replicaLine = (told: Extract<StoreEvent, { kind: 'replicaUnused' | 'replicaUsed' }>): Line => {
  const { kind: event, replica } = told;
  if (told.kind === 'replicaUsed')
    return { level: 'info', fields: { event, replica, durationMs: roundMs(told.seconds * 1_000) } };
  const { reason } = told;
  return { level: 'warn', fields: { event, replica, reason: cut(reason) }, complaint: 'replica_unused' };
};

type Lasting = Extract<StoreEvent, { kind: `following${string}` | `durability${string}` }>;

const lastingLine = (told: Lasting): Line => {
  const { kind: event } = told;
  if (told.kind === 'followingResumed' || told.kind === 'durabilityRestored')
    return { level: 'info', fields: { event, durationMs: roundMs(told.seconds * 1_000) } };
  const fields = { event, reason: cut(told.reason) };
  const complaint = told.kind === 'followingStopped' ? 'following_stopped' : 'durability_reduced';
  return told.isNews ? { level: 'error', fields, complaint } : { level: 'debug', fields };
};

const lossLine = ({ kind: event, reason }: Extract<StoreEvent, { kind: 'commitsLost' }>): Line => ({
  level: 'error',
  fields: { event, reason: cut(reason) },
  complaint: 'commits_lost',
});

const writingLine = (told: Writing): Line => {
  const { kind: event } = told;
  if (told.kind === 'threadEnded') {
    const { thread, reason } = told;
    return { level: 'error', fields: { event, thread, reason: cut(reason) }, complaint: 'thread_ended' };
  }
  if (told.kind === 'writingResumed') {
    const { part, seconds } = told;
    return { level: 'info', fields: { event, part, durationMs: roundMs(seconds * 1_000) } };
  }
  const { part, code, reason } = told;
  return { level: 'error', fields: { event, part, code, reason: cut(reason) }, complaint: 'writing_stopped' };
};

type Told = Exclude<StoreEvent, { kind: 'committed' | 'staleReaders' }>;

export const storeLine = (told: Told): Line => {
  switch (told.kind) {
    case 'damaged':
    case 'endedUnexpectedly':
      return damageLine(told);
    case 'writingStopped':
    case 'writingResumed':
    case 'threadEnded':
      return writingLine(told);
    case 'statements':
    case 'statementFailed': // the request that fails because of it says more
    case 'historyRead':
      return databaseLine(told);
    case 'replicaUnused':
    case 'replicaUsed':
      return replicaLine(told);
    case 'followingStopped':
    case 'followingResumed':
    case 'durabilityReduced':
    case 'durabilityRestored':
      return lastingLine(told);
    case 'reportsDeleted': {
      const { kind: event, count, endMs } = told;
      return { level: 'info', fields: { event, count, before: new Date(endMs).toISOString() } };
    }
    case 'commitsLost':
      return lossLine(told);
  }
};
