// The clients of a soak, in a process of their own: it is told where the deployment is and which secret is valid, and tells what failed.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import type { Programs } from '../faults/programs.ts';
import type { Credentials } from '../support/running-api.ts';
import type { ClientKind } from './client-kinds.ts';
import type { StreamCoverage } from './coverage.ts';
import type { Failure } from './failures.ts';

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
};

export type Order =
  | { readonly order: 'start'; readonly plan: ClientsPlan; readonly credentials: Credentials }
  | { readonly order: 'credentials'; readonly credentials: Credentials }
  /** Ends once readers of live streams have everything until these seconds, or have had long enough. */
  | { readonly order: 'stop'; readonly until: Readonly<Record<string, number>> };

/** What they did until they were stopped. */
export type Told = {
  readonly answered: Readonly<Record<string, number>>;
  readonly failures: readonly Failure[];
  /** Reports of a live stream that came after newer ones. */
  readonly outOfOrder: number;
  /** What each reader of live streams got. */
  readonly readers: readonly Reader[];
};

/** Failures are told at once, so that what the process keeps does not grow. */
export type Message = 'ready' | { readonly failure: Failure } | { readonly told: Omit<Told, 'failures'> };

export type Reader = {
  readonly kind: ClientKind;
  readonly feedIds: readonly string[];
  readonly got: Readonly<Record<string, StreamCoverage>>;
};

export type Clients = {
  readonly child: ChildProcess;
  /** From the next request on. */
  readonly use: (credentials: Credentials) => void;
  /** Resolves once live streams have everything until these seconds. */
  readonly stop: (until: ReadonlyMap<string, number>) => Promise<Told>;
};

export const startClients = async (
  programs: Programs,
  plan: ClientsPlan,
  credentials: Credentials,
): Promise<Clients> => {
  const child = spawn(process.execPath, [programs.fileOf('client-program')], {
    cwd: tmpdir(),
    env: {
      PATH: process.env.PATH,
      NODE_TLS_REJECT_UNAUTHORIZED: '0', // certificates here sign themselves
      NODE_NO_WARNINGS: '1',
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  await once(child, 'message');
  const failures: Failure[] = [];
  const told = new Promise<Omit<Told, 'failures'>>((resolve) => {
    child.on('message', (message: Message) => {
      if (message === 'ready') return;
      if ('failure' in message) failures.push(message.failure);
      else resolve(message.told);
    });
  });
  const order = (one: Order): void => void child.send(one);
  order({ order: 'start', plan, credentials });
  return {
    child,
    use: (next) => order({ order: 'credentials', credentials: next }),
    stop: async (until) => {
      const exited = once(child, 'exit');
      order({ order: 'stop', until: Object.fromEntries(until) });
      const rest = await told;
      child.disconnect();
      await exited;
      return { ...rest, failures };
    },
  };
};
