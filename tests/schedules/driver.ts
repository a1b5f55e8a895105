// The driver of a simulated node: what connection.ts uses of `postgres`, over simulated connections. Messages keep their order and take their time;
// connections can be cut, held up, or lost without a word.
import postgres from 'postgres';
import type { Driver } from '../../server/src/store/postgres/connection.ts';
import type { Cluster } from './database/cluster.ts';
import type { Reply, Session } from './database/server.ts';
import type { Row } from './database/tables.ts';
import type { Executor } from './executor.ts';

export type Network = {
  readonly executor: Executor;
  readonly cluster: Cluster;
  readonly latencyMs: () => number;
  /** A whole number below a bound. */
  readonly random: (below: number) => number;
  /** Is a notification lost on its way? */
  readonly dropsNotification: () => boolean;
};

type Query = {
  readonly text: string;
  readonly parameters: readonly unknown[];
  readonly resolve: (rows: readonly Row[]) => void;
  readonly reject: (error: unknown) => void;
};

/** A connection as the driver has it. `sent` are those without an answer yet. */
type Line = {
  session: Session | undefined;
  readonly sent: Query[];
  state: 'opening' | 'open' | 'closed';
  /** Nothing arrives before, in either direction. */
  heldUntilMs: number;
  toServerMs: number;
  toClientMs: number;
  onClose: (() => void) | undefined;
};

const networkError = (code: string): Error => Object.assign(new Error(`write ${code} simulated`), { code });
const sqlError = (code: string, message: string): Error =>
  new postgres.PostgresError({ code, message, severity: 'ERROR' } as unknown as string); // what the driver itself passes

/** The connections of one node, for faults. */
export type NodeDriver = {
  readonly driver: Driver;
  readonly lines: () => readonly number[];
  /** Both ends notice, one after the other. */
  readonly cut: (line: number) => void;
  readonly hold: (line: number, untilMs: number) => void;
  /** The process is gone: the server notices, or does not. */
  readonly kill: (isNoticed: boolean) => void;
};

type ClientOptions = {
  readonly connection: { readonly statement_timeout: number; readonly synchronous_commit?: string };
  readonly onnotice: (notice: Readonly<Record<string, string>>) => void;
};

const reconnectMs = 100;

export const createNodeDriver = (network: Network, owner: number): NodeDriver => {
  const { executor, cluster, latencyMs, random } = network;
  const lines = new Map<number, { readonly line: Line; readonly cut: () => void }>();
  let [count, isDead] = [0, false];
  const toServer = (line: Line, act: () => void): void => {
    line.toServerMs = Math.max(line.toServerMs, line.heldUntilMs, executor.nowMs() + latencyMs());
    executor.at(line.toServerMs, act, { isQuiet: true });
  };
  const toClient = (line: Line, act: () => void): void => {
    line.toClientMs = Math.max(line.toClientMs, line.heldUntilMs, executor.nowMs() + latencyMs());
    executor.at(line.toClientMs, () => !isDead && act(), { owner });
  };

  const openLine = (
    options: ClientOptions,
    handlers: { opened: () => void; failed: () => void; notified: (payload: string) => void; answered: () => void },
  ): Line => {
    const id = count++;
    const line: Line = {
      session: undefined,
      sent: [],
      state: 'opening',
      heldUntilMs: 0,
      toServerMs: 0,
      toClientMs: 0,
      onClose: undefined,
    };
    const close = (): void => {
      if (line.state === 'closed') return;
      line.state = 'closed';
      lines.delete(id);
      for (const query of line.sent.splice(0)) query.reject(networkError('CONNECTION_CLOSED'));
      line.onClose?.();
    };
    const receive = (reply: Reply): void => {
      if (line.state === 'closed') return;
      if (reply.kind === 'closed') {
        close();
        return;
      }
      if (reply.kind === 'notification') {
        handlers.notified(reply.payload);
        return;
      }
      const query = line.sent.shift();
      if (query === undefined) return;
      if (reply.kind === 'error') query.reject(sqlError(reply.code, reply.message));
      else {
        if (reply.warning !== undefined) options.onnotice({ severity: 'WARNING', message: reply.warning });
        query.resolve(reply.rows);
      }
      handlers.answered();
    };
    const reply = (answer: Reply): void => {
      if (answer.kind === 'notification' && network.dropsNotification()) return;
      toClient(line, () => receive(answer));
    };
    const choice = random(1_000);
    toServer(line, () => {
      const { statement_timeout: statementMs, synchronous_commit } = options.connection;
      line.session = isDead
        ? undefined
        : cluster.open({ statementMs, isFleeting: synchronous_commit === 'off', reply }, choice);
      toClient(line, () => {
        if (line.state === 'closed') return;
        if (line.session === undefined) {
          line.state = 'closed';
          lines.delete(id);
          return handlers.failed();
        }
        line.state = 'open';
        handlers.opened();
      });
    });
    const cut = (): void => {
      const { session } = line;
      toServer(line, () => (session ?? line.session)?.close());
      toClient(line, () => (line.state === 'opening' ? undefined : close()));
    };
    lines.set(id, { line, cut });
    return line;
  };

  const createClient = (options: ClientOptions) => {
    const queue: Query[] = [];
    let line: Line | undefined;
    let [isReserved, isEnded, failures] = [false, false, 0];
    let idle: (() => void) | undefined;
    const isIdle = () => queue.length === 0 && (line === undefined || line.sent.length === 0) && !isReserved;
    const send = (query: Query): void => {
      const { session } = line as Line; // only called on an open one
      line?.sent.push(query);
      const to = line as Line; // as above
      toServer(to, () => session?.receive(query.text, query.parameters));
    };
    const flush = (): void => {
      if (line === undefined) {
        connect();
        return;
      }
      if (line.state !== 'open') return;
      while (queue.length > 0 && !isReserved) {
        const query = queue.shift() as Query; // there is one
        if (query.text.startsWith('begin')) isReserved = true;
        send(query);
      }
      if (isIdle()) idle?.();
    };
    const connect = (): void => {
      if (queue.length === 0) return;
      const opened = openLine(options, {
        opened: () => {
          failures = 0;
          flush();
        },
        failed: () => {
          line = undefined;
          queue.shift()?.reject(networkError('ECONNREFUSED'));
          failures += 1;
          setTimeout(flush, Math.min(1_000, 25 * 2 ** failures));
        },
        notified: () => {},
        answered: flush,
      });
      line = opened;
      opened.onClose = () => {
        if (line === opened) line = undefined;
        isReserved = false;
        setTimeout(flush, 50);
      };
    };
    const submit = (text: string, parameters: readonly unknown[] = []): Promise<readonly Row[]> =>
      new Promise((resolve, reject) => {
        if (isEnded) return reject(networkError('CONNECTION_ENDED'));
        queue.push({ text, parameters, resolve, reject });
        flush();
      });
    const unsafe = (text: string, parameters: readonly unknown[] = []) => ({ execute: () => submit(text, parameters) });
    const begin = async (how: string, act: (transaction: unknown) => Promise<unknown>): Promise<unknown> => {
      await submit(`begin ${how}`);
      const on = line as Line; // answered on it
      let first: unknown;
      const sendOn = (text: string, parameters: readonly unknown[] = []): Promise<readonly Row[]> => {
        const sent = new Promise<readonly Row[]>((resolve, reject) => {
          if (line !== on || on.state !== 'open') return reject(networkError('CONNECTION_CLOSED'));
          send({ text, parameters, resolve, reject });
        });
        sent.catch((error: unknown) => {
          first ??= error;
        });
        return sent;
      };
      const release = (): void => {
        isReserved = false;
        flush();
      };
      const scope = async (): Promise<unknown> => {
        let result: unknown;
        try {
          result = await act({
            unsafe: (text: string, parameters?: readonly unknown[]) => ({ execute: () => sendOn(text, parameters) }),
          });
          if (first !== undefined) throw first;
        } catch (error) {
          await sendOn('rollback');
          release();
          throw (error as { code?: string }).code === '25P02' ? (first ?? error) : error; // the first one says why
        }
        await sendOn('commit');
        release();
        return result;
      };
      const closed = new Promise<never>((_, reject) => {
        const { onClose } = on;
        on.onClose = () => {
          onClose?.();
          reject(networkError('CONNECTION_CLOSED'));
        };
      });
      return Promise.race([scope(), closed]);
    };
    const listen = async (channel: string, told: (payload: string) => void, listening: () => void): Promise<void> => {
      const again = (): void => void setTimeout(() => !isEnded && void listen(channel, told, listening), reconnectMs);
      const to: Line = openLine(options, {
        opened: () => {
          const query: Query = {
            text: `listen ${channel}`,
            parameters: [],
            resolve: () => listening(),
            reject: () => {},
          };
          to.sent.push(query);
          const { session } = to;
          toServer(to, () => session?.receive(query.text, []));
        },
        failed: again,
        notified: told,
        answered: () => {},
      });
      to.onClose = again;
    };
    const destroy = (): void => {
      const { session } = line ?? {};
      if (line !== undefined) {
        const gone = line;
        toServer(gone, () => (session ?? gone.session)?.close());
        gone.state = 'closed';
        gone.onClose?.();
        for (const query of gone.sent.splice(0)) query.reject(networkError('CONNECTION_DESTROYED'));
      }
      for (const query of queue.splice(0)) query.reject(networkError('CONNECTION_DESTROYED'));
      line = undefined;
    };
    const end = async ({ timeout = 5 }: { timeout?: number } = {}): Promise<void> => {
      isEnded = true;
      if (!isIdle() && timeout > 0)
        await new Promise<void>((resolve) => {
          idle = resolve;
          setTimeout(resolve, timeout * 1_000);
        });
      destroy();
    };
    return { unsafe, begin, listen, end };
  };

  return {
    driver: ((_: string, options: ClientOptions) => createClient(options)) as unknown as Driver, // as much of it as is used
    lines: () => [...lines.keys()],
    cut: (id) => lines.get(id)?.cut(),
    hold: (id, untilMs) => {
      const held = lines.get(id)?.line;
      if (held !== undefined) held.heldUntilMs = untilMs;
    },
    kill: (isNoticed) => {
      isDead = true;
      executor.kill(owner);
      if (isNoticed) for (const { line } of lines.values()) toServer(line, () => line.session?.close());
    },
  };
};
