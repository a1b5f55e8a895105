// The last requests that a sandbox received, in the order of their arrival, for tests to look at.
import type { RouteName } from '@sealpost/protocol';

/** A request of a client. */
export type LoggedRequest = {
  /** When it arrived, in sandbox time. */
  readonly atMs: number;
  readonly method: string;
  /** Null for a path that is not a route of the API. */
  readonly route: RouteName | null;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** The user ID that it gives, whether or not its signature is right; null without one. */
  readonly account: string | null;
  /** Null while it is not answered, and when its connection was cut instead. */
  readonly status: number | null;
  /** IDs of the faults that acted on it. */
  readonly faults: readonly string[];
};

/** Requests that are kept; older ones are dropped. */
export const requestsMax = 1_000;

type Entry = { -readonly [K in keyof LoggedRequest]: LoggedRequest[K] };

export function createRequestLog(max = requestsMax) {
  let entries: Entry[] = [];
  return {
    /** Notes a request that came in; the returned functions complete it. */
    add: (request: Omit<LoggedRequest, 'status' | 'faults'>) => {
      const entry: Entry = { ...request, status: null, faults: [] };
      entries.push(entry);
      if (entries.length >= 2 * max) entries = entries.slice(-max);
      return {
        answered: (status: number): void => {
          entry.status = status;
        },
        faulted: (id: string): void => {
          if (!entry.faults.includes(id)) entry.faults = [...entry.faults, id];
        },
      };
    },
    list: (): readonly LoggedRequest[] => entries.slice(-max).map((entry) => ({ ...entry })),
    clear: (): void => {
      entries = [];
    },
  };
}
