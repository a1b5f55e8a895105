// Shares one rate limit between the nodes on a store (D86): a few times a second each node publishes the tokens that it granted and counts those
// of the others. In between each decides alone; while the store is unavailable, every node grants the whole limit.
import { createFailureState } from '../runtime/failure-state.ts';
import type { NodeExchange } from '../store/nodes.ts';
import type { SpentByTable } from './limit-exchange.ts';
import type { SpentTokens } from './rate-limit.ts';

/** A node's own side of the exchange. */
export type NodeLimits = {
  /** What this node gave since the last call. */
  readonly collect: () => SpentByTable;
  /** Takes what the others gave. */
  readonly receive: (spent: SpentByTable) => void;
};

/** Begins to exchange; returns the way to stop, which resolves when nothing is under way. */
export type ShareLimits = (limits: NodeLimits) => () => Promise<void>;

export const exchangeEveryMs = 200;
/** Tokens granted longer ago are not published: most of them have refilled. */
export const tellMaxMs = 1_000;
/** Buckets per message; more are not published, which only favors their owners. */
const rowsMax = 10_000;

/** Calls `onTrouble` when an exchange fails, once until one works again. */
export const createLimitSharing =
  (nodes: NodeExchange, onTrouble: (message: string, error: unknown) => void): ShareLimits =>
  ({ collect, receive }) => {
    const text = 'Rate limits could not be exchanged with other nodes. Each node applies the whole limit.';
    const state = createFailureState<Error>({ began: (error) => onTrouble(text, error) });
    let underWay: Promise<void> | undefined;
    let collectedAtMs = performance.now();
    /** What was given since the last call, unless that was too long ago: an exchange may take as long as a reading of the store. */
    const collectInTime = (): SpentByTable => {
      const sinceMs = performance.now() - collectedAtMs;
      collectedAtMs += sinceMs;
      const spent = collect();
      return sinceMs > tellMaxMs ? { accounts: [], addresses: [] } : spent;
    };
    const exchange = async (): Promise<void> => {
      // Counts of a failed exchange are dropped: published late, they would limit accounts for requests of long ago.
      try {
        for (const told of await nodes.exchange(encode(collectInTime()))) receive(decode(told));
        state.worked();
      } catch (error) {
        state.failed(error as Error); // of the store
      }
    };
    const timer = setInterval(() => {
      underWay ??= exchange().finally(() => {
        underWay = undefined;
      });
    }, exchangeEveryMs);
    return async () => {
      clearInterval(timer);
      await underWay;
    };
  };

const encode = ({ accounts, addresses }: SpentByTable): Uint8Array | undefined =>
  accounts.length + addresses.length === 0
    ? undefined
    : Buffer.from(JSON.stringify({ accounts: accounts.slice(0, rowsMax), addresses: addresses.slice(0, rowsMax) }));

/** Parses what a node published; what another release may publish and this one does not understand is ignored. */
const decode = (told: Uint8Array): SpentByTable => {
  const { accounts, addresses } = JSON.parse(Buffer.from(told).toString()) as Readonly<Record<string, unknown>>; // written as an object
  return { accounts: rowsOf(accounts), addresses: rowsOf(addresses) };
};

const rowsOf = (value: unknown): readonly SpentTokens[] =>
  Array.isArray(value) ? value.filter((row): row is SpentTokens => Array.isArray(row) && isRow(row)) : [];

const isRow = ([key, perSecond, tokens]: readonly unknown[]): boolean =>
  typeof key === 'string' && isAmount(perSecond) && isAmount(tokens);

const isAmount = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1e9;
