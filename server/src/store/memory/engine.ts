// The engine for tests: everything is in this process's memory, and nothing is left when it ends. It opens in well under a millisecond and needs
// neither threads nor files.

import { quarantineBytesMax, quarantineLinesMax } from '../bounds.ts';
import { encodeRecord } from '../format/record.ts';
import {
  type AppliedRetention,
  type KeyHolder,
  type KeyHolders,
  keyHolderFreshMs,
  type RetentionRecord,
} from '../nodes.ts';
import { type Quarantine, type QuarantinedReport, type Store, StoreError } from '../store.ts';
import type { StoreEvent } from '../store-event.ts';
import { createMemoryAdmin } from './admin.ts';
import { createMemoryReports } from './reports.ts';
import { createMemoryUsage } from './usage.ts';

type MemoryStore = Omit<Store, 'backup'>;

/** A place in memory that outlives closing: opened by one writer and any number of readers, all in this process. */
export type StoreMemory = {
  readonly open: (mode: 'read' | 'write', tell?: (event: StoreEvent) => void) => MemoryStore;
};

export function createStoreMemory(): StoreMemory {
  const reports = createMemoryReports();
  const quarantine = createMemoryQuarantine();
  const admin = createMemoryAdmin();
  const usage = createMemoryUsage();
  const keyHolders = createMemoryKeyHolders();
  const retention = createMemoryRetention();
  let isWritten = false;
  return {
    open: (mode, tell = () => {}) => {
      if (mode === 'write' && isWritten)
        throw new StoreError(
          'store_locked',
          'This process is already writing to the store in memory. Send your reports to it: sealpost ingest --to URL.',
        );
      isWritten ||= mode === 'write';
      const stops = new Set<() => void>();
      let closed = false;
      const requireWritable = (): void => {
        if (closed) throw new StoreError('store_closed', 'The store in memory is closed.');
        if (mode === 'read') throw new StoreError('store_read_only', 'The store in memory is open for reading only.');
      };
      /** Listeners of a store end with it. */
      const untilClosed = (listen: (wake: () => void) => () => void) => (wake: () => void) => {
        const stop = listen(wake);
        stops.add(stop);
        return () => {
          stops.delete(stop);
          stop();
        };
      };
      return {
        reports: {
          ...reports,
          append: async (batch) => {
            requireWritable();
            const began = performance.now();
            const outcomes = await reports.append(batch);
            tell({ kind: 'committed', seconds: (performance.now() - began) / 1_000 });
            return outcomes;
          },
          trim: async (retention) => {
            requireWritable();
            return reports.trim(retention);
          },
          onAppended: untilClosed(reports.onAppended),
        },
        quarantine,
        admin: { ...admin, onChanged: untilClosed(admin.onChanged) },
        usage,
        nodes: undefined,
        keyHolders,
        retention,
        damage: () => [],
        stops: () => [],
        findDamage: async () => [],
        close: async () => {
          if (closed) return;
          closed = true;
          if (mode === 'write') isWritten = false;
          for (const stop of stops) stop();
        },
      };
    },
  };
}

const createMemoryQuarantine = (): Quarantine => {
  const lines: { readonly entry: QuarantinedReport; readonly bytes: number }[] = [];
  let bytes = 0;
  return {
    add: async (rejected) => {
      for (const entry of rejected) {
        const size = encodeRecord(entry).length;
        lines.push({ entry, bytes: size });
        bytes += size;
      }
      while (lines.length > quarantineLinesMax || bytes > quarantineBytesMax) bytes -= lines.shift()?.bytes ?? bytes;
    },
    list: async (limit) => (limit > 0 ? lines.slice(-limit).map(({ entry }) => entry) : []).reverse(),
    count: async () => lines.length,
  };
};

const createMemoryKeyHolders = (): KeyHolders => {
  const holders = new Map<string, { readonly holder: KeyHolder; readonly atMs: number }>();
  return {
    announce: async (holder) => void holders.set(holder.node, { holder, atMs: performance.now() }),
    withdraw: async (node) => void holders.delete(node),
    list: async () =>
      [...holders.values()]
        .filter(({ atMs }) => performance.now() - atMs <= keyHolderFreshMs)
        .map(({ holder }) => holder),
  };
};

const createMemoryRetention = (): RetentionRecord => {
  let applied: AppliedRetention | undefined;
  return {
    get: async () => applied,
    update: async (change) => {
      applied = change(applied);
      return applied;
    },
  };
};
