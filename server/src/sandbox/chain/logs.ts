// Logs of a range of blocks, read a few blocks at a time: EDR puts all of them into one answer, however many there are. The bounds are those of public nodes.
import { EvmRequestError, type RpcRequest, rpcCodes } from './rpc-outcome.ts';

export const logBlocksMax = 10_000n;
const logsMax = 10_000;
/** Of JSON. */
const logBytesMax = 10_000_000;

/** Where logs are read from: a block, and how many of its logs that match are left out. */
export type LogPosition = { readonly block: bigint; readonly skip: number };

/** Up to the bounds; `rest` is where the next page begins if there are more. */
export type LogPage = { readonly logs: readonly unknown[]; readonly rest: LogPosition | undefined };

type Fields = Readonly<Record<string, unknown>>;
type Log = { readonly blockNumber: string };

export const toQuantity = (value: bigint): string => `0x${value.toString(16)}`;

/** A block number or a tag, as `checkParams` lets them through; a range ends with the newest block. */
export const blockOf = (value: unknown, newest: bigint): bigint => {
  if (value === 'earliest') return 0n;
  if (typeof value !== 'string' || !/^0x/i.test(value)) return newest; // absent, or a tag
  return value.length === 2 ? 0n : BigInt(value);
};

/** The blocks of a filter. Throws if there are too many. */
const requireLogRange = (filter: Fields, newest: bigint): { readonly from: bigint; readonly to: bigint } => {
  const [from, last] = [blockOf(filter.fromBlock, newest), blockOf(filter.toBlock, newest)];
  const to = last < newest ? last : newest;
  const count = to - from + 1n;
  if (count <= logBlocksMax) return { from, to };
  const example = `fromBlock ${toQuantity(from)} and toBlock ${toQuantity(from + logBlocksMax - 1n)}`;
  throw tooMany(
    `Logs of at most ${logBlocksMax} blocks are read at once, not of ${count}. Call eth_getLogs for fewer, such as ${example}.`,
  );
};

/** All logs that match. Throws if they are more than an answer may have. */
export const readAllLogs = async (request: RpcRequest, filter: Fields, newest: bigint): Promise<readonly unknown[]> => {
  if ((filter.blockHash ?? undefined) !== undefined) {
    const page = createPage({ block: 0n, skip: 0 });
    page.add((await request('eth_getLogs', filter)) as readonly Log[]); // EDR's logs
    if (page.rest() !== undefined) throw tooManyLogs(narrower);
    return page.logs;
  }
  const { from, to } = requireLogRange(filter, newest);
  const { logs, rest } = await readLogPage(request, filter, { block: from, skip: 0 }, to);
  if (rest === undefined) return logs;
  throw tooManyLogs(
    rest.block === from
      ? narrower
      : `Call eth_getLogs for fewer blocks, such as up to toBlock ${toQuantity(rest.block - 1n)}, or ask for an address or topics.`,
  );
};

const narrower = 'Ask for an address or topics, or for the receipts of single transactions.';

const tooMany = (message: string) => new EvmRequestError({ code: rpcCodes.limit, message });

const tooManyLogs = (advice: string) =>
  tooMany(`An answer has at most ${logsMax} logs and ${logBytesMax / 1e6} MB; there are more. ${advice}`);

/** Logs from a position on, as many as an answer may have. */
export const readLogPage = async (
  request: RpcRequest,
  filter: Fields,
  position: LogPosition,
  to: bigint,
): Promise<LogPage> => {
  const page = createPage(position);
  for await (const { first, last } of partsOf(request, position.block, to)) {
    const range = { ...filter, fromBlock: toQuantity(first), toBlock: toQuantity(last) };
    page.add((await request('eth_getLogs', range)) as readonly Log[]); // EDR's logs
    if (page.rest() !== undefined) break;
  }
  return { logs: page.logs, rest: page.rest() };
};

/** Takes logs until there are as many as an answer may have. */
const createPage = (begin: LogPosition) => {
  const logs: Log[] = [];
  let toSkip = begin.skip;
  let bytes = 0;
  let rest: LogPosition | undefined;
  /** Where this log is, among those of its block that match. */
  const positionOf = ({ blockNumber }: Log): LogPosition => {
    const block = BigInt(blockNumber);
    const taken = logs.filter((log) => log.blockNumber === blockNumber).length;
    return { block, skip: taken + (block === begin.block ? begin.skip : 0) };
  };
  return {
    logs,
    rest: () => rest,
    add: (found: readonly Log[]): void => {
      const skipped = Math.min(toSkip, found.length);
      toSkip = 0; // the first part has all of the first block
      for (const log of found.slice(skipped)) {
        bytes += JSON.stringify(log).length;
        if (logs.length === logsMax || bytes > logBytesMax) {
          rest = positionOf(log);
          return;
        }
        logs.push(log);
      }
    },
  };
};

/** The most blocks that EDR tells the gas of at once. */
const historyMax = 1_024n;

type FeeHistory = { readonly gasUsedRatio: readonly number[] };

/** A range in parts whose blocks used no more gas together than one full block, which has room for 21,000 logs. */
async function* partsOf(request: RpcRequest, from: bigint, to: bigint) {
  let [first, gas] = [from, 0];
  for (let block = from; block <= to; ) {
    const count = to - block + 1n < historyMax ? to - block + 1n : historyMax;
    const newest = toQuantity(block + count - 1n);
    const { gasUsedRatio } = (await request('eth_feeHistory', toQuantity(count), newest, [])) as FeeHistory; // EDR's
    for (const ratio of gasUsedRatio) {
      if (gas > 0 && gas + ratio > 1) {
        yield { first, last: block - 1n };
        [first, gas] = [block, 0];
      }
      gas += ratio;
      block += 1n;
    }
  }
  if (first <= to) yield { first, last: to };
}
