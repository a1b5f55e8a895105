// Bounds of JSON-RPC params that EDR does not have: with larger ones it ends the process, or works for hours. Messages are for the caller.
import * as Rlp from 'ox/Rlp';

/**
 * Gas of a block, a transaction and a call. EDR records every step of a call: an endless loop takes 0.2 GB of memory per million gas until it ends. The largest
 * contract that can be deployed takes 6 million.
 */
export const gasMax = 8_000_000;

/** What is wrong with the params of a call; undefined if they are within bounds. */
export const checkParams = (method: string, params: unknown): string | undefined =>
  Array.isArray(params) ? checks[method]?.(params) : undefined;

type Check = (params: readonly unknown[]) => string | undefined;

/** A value in wei is below 2^128: added to the fees, it fits 256 bits. */
const valueBits = 128n;
/** A fee per gas is below 2^96: EDR panics if fee times gas, at most 8 million, does not fit 128 bits. */
const feeBits = 96n;
const amounts: Readonly<Record<string, bigint>> = {
  value: valueBits,
  gasPrice: feeBits,
  maxFeePerGas: feeBits,
  maxPriorityFeePerGas: feeBits,
  maxFeePerBlobGas: feeBits,
};
/** As geth has it. */
const percentilesMax = 100;
const logAddressesMax = 1_000;
const logTopicsMax = 4;
const topicsPerPositionMax = 1_000;
/** Fields of typed data, those of nested types counted each time. The largest messages in use have about 100. */
const typedFieldsMax = 1_000;
/** Characters of a type, such as an array of arrays. */
const typeNameMax = 256;
const typeName = /^[A-Za-z_$][\w$]*(?:\[\d*\])*$/;

type Fields = Readonly<Record<string, unknown>>;

/** EDR also takes a list of the fields in order, whose bounds nobody would check. */
const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const checkCall: Check = ([call]) => {
  if (!isFields(call)) return 'A call is an object with fields such as to and data.';
  for (const [name, bits] of Object.entries(amounts)) {
    const amount = call[name] ?? 0;
    const quantity = quantityOf(amount);
    if (quantity === undefined || quantity >> bits > 0n) return `${name} must be a hex number below 2^${bits}.`;
  }
  return undefined;
};

/** Not the decimal, binary and octal texts that EDR also takes, and other nodes do not. */
const quantityOf = (value: unknown): bigint | undefined => {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : undefined;
  if (typeof value !== 'string' || !/^0x[0-9a-f]{0,64}$/i.test(value)) return undefined;
  return value.length === 2 ? 0n : BigInt(value);
};

/** EDR mines a signed transaction with more gas than its block has. */
const checkRawTransaction: Check = ([raw]) => {
  const gas = quantityOf(gasOfRaw(raw));
  if (gas === undefined) return 'A raw transaction is a signed transaction in hex.';
  return gas > gasMax ? `The gas of a transaction must be at most ${gasMax}.` : undefined;
};

/** Where the gas is in the fields of a transaction, by its first byte; others are legacy transactions, without a type. */
const gasPositions: Readonly<Record<string, number>> = { '0x01': 3, '0x02': 4, '0x03': 4, '0x04': 4 };
const legacyGasPosition = 2;

const gasOfRaw = (raw: unknown): unknown => {
  if (typeof raw !== 'string' || !/^0x[0-9a-f]+$/i.test(raw)) return undefined;
  const type = raw.slice(0, 4);
  const position = gasPositions[type];
  try {
    const fields: unknown = Rlp.toHex(position === undefined ? (raw as `0x${string}`) : `0x${raw.slice(4)}`); // it begins with 0x
    const [first] = Array.isArray(fields) ? fields : [];
    const body = type === '0x03' && Array.isArray(first) ? first : fields; // its blobs are beside it
    return Array.isArray(body) ? body[position ?? legacyGasPosition] : undefined;
  } catch {
    return undefined;
  }
};

const checkFeeHistory: Check = ([, , percentiles]) =>
  Array.isArray(percentiles) && percentiles.length > percentilesMax
    ? `At most ${percentilesMax} percentiles are offered, not ${percentiles.length}.`
    : undefined;

const blockTags: readonly unknown[] = ['earliest', 'latest', 'pending', 'safe', 'finalized'];

const checkLogFilter: Check = ([filter]) => {
  if (!isFields(filter)) return 'A log filter is an object with fields such as fromBlock and address.';
  for (const name of ['fromBlock', 'toBlock']) {
    const block = filter[name] ?? 'latest';
    if (!blockTags.includes(block) && (typeof block !== 'string' || quantityOf(block) === undefined))
      return `${name} must be a block number in hex, or a tag such as latest.`;
  }
  const { address, topics } = filter;
  if (Array.isArray(address) && address.length > logAddressesMax)
    return `A log filter has at most ${logAddressesMax} addresses, not ${address.length}.`;
  if (!Array.isArray(topics)) return undefined;
  if (topics.length > logTopicsMax) return `A log has at most ${logTopicsMax} topics, not ${topics.length}.`;
  return topics.some((one) => Array.isArray(one) && one.length > topicsPerPositionMax)
    ? `A log filter has at most ${topicsPerPositionMax} topics per position.`
    : undefined;
};

const checkTypedData: Check = ([, raw]) => {
  const typed = typeof raw === 'string' ? parseJson(raw) : raw;
  const types = isFields(typed) ? typed.types : undefined;
  if (!isFields(types)) return 'Typed data is an object with types, primaryType, domain and message.';
  const members = new Map<string, readonly string[]>();
  for (const [name, fields] of Object.entries(types)) {
    const typesOfFields = typeNames(fields);
    if (typesOfFields === undefined)
      return `types.${name.slice(0, 64)} must be a list of fields, each with a name and a type of at most ${typeNameMax} characters.`;
    members.set(name, typesOfFields);
  }
  return [...members.keys()].some((name) => countFields(members, name) > typedFieldsMax)
    ? `Typed data has at most ${typedFieldsMax} fields, those of nested types included.`
    : undefined;
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const isTypeName = (type: unknown): type is string =>
  typeof type === 'string' && type.length <= typeNameMax && typeName.test(type);

const typeNames = (fields: unknown): readonly string[] | undefined => {
  if (!Array.isArray(fields)) return undefined;
  const types: unknown[] = fields.map((field) => (isFields(field) ? field.type : undefined));
  return types.every(isTypeName) ? types.map((type) => type.slice(0, `${type}[`.indexOf('['))) : undefined;
};

/** Fields of a type with those of its nested types; stops soon after the bound, also where types are circular. */
const countFields = (members: ReadonlyMap<string, readonly string[]>, root: string): number => {
  const open = [root];
  let count = 0;
  for (let name = open.pop(); name !== undefined && count <= typedFieldsMax; name = open.pop()) {
    const nested = members.get(name) ?? [];
    count += nested.length;
    if (count <= typedFieldsMax) open.push(...nested);
  }
  return count;
};

const checks: Readonly<Record<string, Check>> = {
  eth_call: checkCall,
  eth_estimateGas: checkCall,
  eth_sendTransaction: checkCall,
  eth_sendRawTransaction: checkRawTransaction,
  eth_feeHistory: checkFeeHistory,
  eth_getLogs: checkLogFilter,
  eth_newFilter: checkLogFilter,
  eth_signTypedData_v4: checkTypedData,
};
