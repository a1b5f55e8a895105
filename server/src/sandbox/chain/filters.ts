// Filters that clients poll. EDR collects the events of each filter until they are read, without a bound: here a filter is a position, and a read answers what the
// chain has from there on.
import { blockOf, type LogPosition, logBlocksMax, readAllLogs, readLogPage, toQuantity } from './logs.ts';
import { EvmRequestError, type RpcRequest, rpcCodes } from './rpc-outcome.ts';

/** Filters of all clients together; beyond them, the one that was not used for the longest time is removed. */
const filtersMax = 100;
/** Blocks that one read of hashes goes through; a block has at most 380 transactions. */
const hashBlocksMax = 1_000n;

type Fields = Readonly<Record<string, unknown>>;
type Kind = 'logs' | 'blocks' | 'transactions';
type Filter = { readonly kind: Kind; readonly criteria: Fields; position: LogPosition };

const kinds: Readonly<Record<string, Kind>> = {
  eth_newFilter: 'logs',
  eth_newBlockFilter: 'blocks',
  eth_newPendingTransactionFilter: 'transactions',
};

export type Filters = {
  readonly has: (method: string) => boolean;
  /** Answers a method of filters. Throws `EvmRequestError`. */
  readonly answer: (method: string, params: readonly unknown[], newest: bigint) => Promise<unknown>;
  /** Blocks after this one are no longer there. */
  readonly reverted: (newest: bigint) => void;
};

export const createFilters = (request: RpcRequest): Filters => {
  const filters = new Map<string, Filter>(); // least recently used first
  let made = 0;
  const create = async (kind: Kind, criteria: Fields, newest: bigint): Promise<string> => {
    if (kind === 'logs') await requireCriteria(request, criteria, newest);
    made += 1;
    const id = toQuantity(BigInt(made));
    filters.set(id, { kind, criteria, position: { block: beginOf(kind, criteria, newest), skip: 0 } });
    const [oldest] = filters.keys();
    if (filters.size > filtersMax && oldest !== undefined) filters.delete(oldest);
    return id;
  };
  /** Undefined if there is none. */
  const use = (id: string): Filter | undefined => {
    const filter = filters.get(id);
    if (filter === undefined) return undefined;
    filters.delete(id);
    filters.set(id, filter);
    return filter;
  };
  return {
    has: (method) => method in kinds || polling.test(method),
    answer: async (method, [param], newest) => {
      const kind = kinds[method];
      if (kind !== undefined) return create(kind, Object(param) as Fields, newest); // checkParams looks at its fields
      const id = requireId(param);
      if (method === 'eth_uninstallFilter') return filters.delete(id);
      const filter = use(id);
      if (filter === undefined) return null; // as EDR has it
      return method === 'eth_getFilterLogs' ? readLogs(request, filter, newest) : readChanges(request, filter, newest);
    },
    reverted: (newest) => {
      for (const filter of filters.values())
        if (filter.position.block > newest) filter.position = { block: newest + 1n, skip: 0 };
    },
  };
};

const polling = /^eth_(getFilter(Changes|Logs)|uninstallFilter)$/;

const invalid = (message: string) => new EvmRequestError({ code: rpcCodes.invalidParams, message });

const requireId = (param: unknown): string => {
  if (typeof param !== 'string') throw invalid('The ID of a filter is the text that the filter was made with.');
  return param;
};

/** EDR checks address and topics; of blocks that are not there yet, it has no logs. */
const requireCriteria = async (request: RpcRequest, criteria: Fields, newest: bigint): Promise<void> => {
  if ((criteria.blockHash ?? undefined) !== undefined)
    throw invalid('A filter has no blockHash. Use eth_getLogs for the logs of one block.');
  const next = toQuantity(newest + 1n);
  await request('eth_getLogs', { ...criteria, fromBlock: next, toBlock: next });
};

/** As with EDR: logs from fromBlock on, by default from the newest block on; blocks from the newest one on; new transactions. */
const beginOf = (kind: Kind, { fromBlock }: Fields, newest: bigint): bigint => {
  if (kind === 'logs') return blockOf(fromBlock, newest);
  return kind === 'blocks' ? newest : newest + 1n;
};

const readLogs = (request: RpcRequest, { kind, criteria }: Filter, newest: bigint): Promise<readonly unknown[]> => {
  if (kind !== 'logs') throw invalid(`This filter is one of ${kind}. Use eth_getFilterChanges.`);
  return readAllLogs(request, criteria, newest);
};

/** What is new since the last read, as much as an answer may have; the next read goes on from there. */
const readChanges = async (request: RpcRequest, filter: Filter, newest: bigint): Promise<readonly unknown[]> => {
  const { kind, criteria, position } = filter;
  const blocksMax = kind === 'logs' ? logBlocksMax : hashBlocksMax;
  const [end, bound] = [lastOf(criteria, newest), position.block + blocksMax - 1n];
  const to = bound < end ? bound : end;
  if (position.block > to) return [];
  const { logs, rest } =
    kind === 'logs'
      ? await readLogPage(request, criteria, position, to)
      : { logs: await readHashes(request, kind, position.block, to), rest: undefined };
  filter.position = rest ?? { block: to + 1n, skip: 0 };
  return logs;
};

/** A tag moves with the chain. */
const lastOf = ({ toBlock }: Fields, newest: bigint): bigint => {
  const to = blockOf(toBlock, newest);
  return to < newest ? to : newest;
};

type Block = { readonly hash: string; readonly transactions: readonly string[] };

const readHashes = async (request: RpcRequest, kind: Kind, from: bigint, to: bigint): Promise<readonly string[]> => {
  const hashes: string[] = [];
  for (let number = from; number <= to; number += 1n) {
    const block = (await request('eth_getBlockByNumber', toQuantity(number), false)) as Block; // one that is there
    if (kind === 'blocks') hashes.push(block.hash);
    else hashes.push(...block.transactions);
  }
  return hashes;
};
