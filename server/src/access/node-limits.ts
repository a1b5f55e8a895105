// How nodes on one store hold one limit (D86): a few times a second each tells the others which tokens it gave, and takes theirs as
// given. Between two of these each decides alone; while the store is away every node has the whole limit for itself.
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
/** Tokens that were given over a longer time are not told: most of them have come back. */
const tellMaxMs = 1_000;
/** Buckets that one message tells of; more at once are not told, which only favours their owners. */
const rowsMax = 10_000;

/** `onTrouble` is told when an exchange fails, once until one works again. */
export const createLimitSharing =
  (nodes: NodeExchange, onTrouble: (message: string, error: unknown) => void): ShareLimits =>
  ({ collect, receive }) => {
    let isTroubled = false;
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
      // What a failed exchange was to tell is dropped: told late, it would be held against people for what they did long ago.
      try {
        for (const told of await nodes.exchange(encode(collectInTime()))) receive(decode(told));
        isTroubled = false;
      } catch (error) {
        if (!isTroubled) onTrouble('Limits are held by each node alone, since the others cannot be heard.', error);
        isTroubled = true;
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

/** Reads what a node told; what another release may tell and this one does not understand counts as nothing. */
const decode = (told: Uint8Array): SpentByTable => {
  const { accounts, addresses } = JSON.parse(Buffer.from(told).toString()) as Readonly<Record<string, unknown>>; // written as an object
  return { accounts: rowsOf(accounts), addresses: rowsOf(addresses) };
};

const rowsOf = (value: unknown): readonly SpentTokens[] =>
  Array.isArray(value) ? value.filter((row): row is SpentTokens => Array.isArray(row) && isRow(row)) : [];

const isRow = ([key, perSecond, tokens]: readonly unknown[]): boolean =>
  typeof key === 'string' && isAmount(perSecond) && isAmount(tokens);

const isAmount = (value: unknown): boolean => typeof value === 'number' && value > 0 && value <= 1e9;
