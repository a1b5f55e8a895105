// The clients of a soak, in a process of their own: it is told where the deployment is and which secret is valid, and tells what failed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import type { Programs } from '../faults/programs.ts';
import type { Credentials } from '../support/running-api.ts';
import type { ClientKind } from './client-kinds.ts';

export type ClientsPlan = {
  /** The balancer. */
  readonly url: string;
  /** The second deployment, over TLS. */
  readonly tlsUrl: string;
  /** An account whose secret stays, there too. */
  readonly steady: Credentials;
  readonly feedIds: readonly string[];
  /** How many clients there are of each kind. */
  readonly counts: Readonly<Record<ClientKind, number>>;
  /** Between two requests of a client, on average. */
  readonly pauseMs: number;
  /** How long they will run. */
  readonly runMs: number;
};

export type Failure = { readonly atMs: number; readonly kind: ClientKind; readonly text: string };

export type Order =
  | { readonly order: 'start'; readonly plan: ClientsPlan; readonly credentials: Credentials }
  | { readonly order: 'credentials'; readonly credentials: Credentials }
  | { readonly order: 'stop' };

/** What they did until they were stopped. */
export type Told = {
  readonly answered: Readonly<Record<string, number>>;
  readonly failures: readonly Failure[];
  /** Reports of a live stream that came after newer ones. */
  readonly outOfOrder: number;
  /** 99th percentile of the requests without retries, in each quarter of the run. */
  readonly p99Ms: readonly number[];
};

export type Clients = {
  readonly child: ChildProcess;
  /** From the next request on. */
  readonly use: (credentials: Credentials) => void;
  readonly stop: () => Promise<Told>;
};

export const startClients = async (
  programs: Programs,
  plan: ClientsPlan,
  credentials: Credentials,
): Promise<Clients> => {
  const child = spawn(process.execPath, [programs.fileOf('client-program')], {
    cwd: tmpdir(),
    env: { PATH: process.env.PATH, NODE_TLS_REJECT_UNAUTHORIZED: '0', NODE_NO_WARNINGS: '1' }, // certificates here sign themselves
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  const order = (one: Order): void => void child.send(one);
  order({ order: 'start', plan, credentials });
  return {
    child,
    use: (next) => order({ order: 'credentials', credentials: next }),
    stop: async () => {
      const told = once(child, 'message');
      const exited = once(child, 'exit');
      order({ order: 'stop' });
      const [all] = (await told) as [Told]; // what the program sends at its end
      child.disconnect();
      await exited;
      return all;
    },
  };
};
