// A node of a schedule: the product's PostgreSQL engine on a simulated driver, and a subscriber that follows the append order as live delivery does.
import type { Driver } from '../../server/src/store/postgres/connection.ts';
import { openPostgresStore } from '../../server/src/store/postgres/engine.ts';
import type { Store } from '../../server/src/store/store.ts';
import type { NodeDriver } from './driver.ts';
import type { Executor } from './executor.ts';

type NodeStore = Pick<Store, 'reports'>;

export type Process = {
  readonly node: number;
  readonly network: NodeDriver;
  readonly store: () => NodeStore | undefined;
  /** How far the subscriber has got; undefined until it has begun. */
  readonly position: () => number | undefined;
};

export type ProcessOptions = {
  readonly node: number;
  readonly owner: number;
  readonly network: NodeDriver;
  readonly executor: Executor;
  /** A faulty variant of the driver, where one is planted. */
  readonly alter: (driver: Driver) => Driver;
  readonly opened: (store: NodeStore) => void;
  /** What the subscriber received: positions and keys, and whether something before them is missing. */
  readonly received: (from: number, next: Awaited<ReturnType<Store['reports']['appendedAfter']>>) => void;
};

const url = 'postgres://sealpost@database/sealpost?connections=6';
const retryMs = 200;
const pageMax = 64;

/** Starts a process, which tries to open its store until it can. */
export const startProcess = ({ node, owner, network, executor, alter, opened, received }: ProcessOptions): Process => {
  let store: NodeStore | undefined;
  let position: number | undefined;
  const later = (act: () => void): void => void executor.after(retryMs, act, { owner });
  const open = (): void => {
    const options = { tell: () => {}, share: 1, replicas: [], driver: alter(network.driver) };
    openPostgresStore(url, 'write', options).then(
      (found) => {
        store = found;
        opened(found);
        follow(found);
      },
      () => later(open),
    );
  };
  const follow = ({ reports }: NodeStore): void => {
    let state: 'idle' | 'reading' | 'again' = 'idle';
    const step = async (): Promise<void> => {
      try {
        position ??= await reports.position();
        const next = await reports.appendedAfter(position, pageMax);
        received(position, next);
        position = next.position;
      } catch {
        later(wake);
      }
    };
    const wake = (): void => {
      if (state !== 'idle') {
        state = 'again';
        return;
      }
      state = 'reading';
      void step().then(() => {
        const isDue = state === 'again';
        state = 'idle';
        if (isDue) wake();
      });
    };
    reports.onAppended(wake);
    wake();
  };
  executor.after(0, open, { owner });
  return { node, network, store: () => store, position: () => position };
};
