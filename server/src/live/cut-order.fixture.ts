import type { ReportStore, StoredReport } from '../store/store.ts';

/** An order of appended reports whose end can be lost, as by a standby that takes over without it. */
export const createCutOrder = (start: readonly StoredReport[]) => {
  let order = start;
  const wakes = new Set<() => void>();
  const change = (next: readonly StoredReport[]): void => {
    order = next;
    for (const wake of wakes) wake();
  };
  const reports: Pick<ReportStore, 'position' | 'onAppended' | 'appendedAfter'> = {
    position: async () => order.length,
    onAppended: (wake) => {
      wakes.add(wake);
      return () => wakes.delete(wake);
    },
    appendedAfter: async (position, limit) => {
      if (position > order.length) return { reports: [], positions: [], position: order.length, missed: true };
      const next = order.slice(position, position + limit);
      const positions = next.map((_, i) => position + i + 1);
      return { reports: next, positions, position: position + next.length, missed: false };
    },
  };
  return {
    reports,
    append: (more: readonly StoredReport[]) => change([...order, ...more]),
    cut: (length: number) => change(order.slice(0, length)),
  };
};
