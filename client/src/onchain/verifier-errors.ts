// The custom errors of the verifier contracts: selector, name, inputs, and what to do. Tests compare the selectors with ox's hash.
// From Verifier 2.0.0, VerifierProxy 2.0.0 and FeeManager 2.1.0; also those of the earlier Verifier 1.2.0 and of v0.4 that a report can cause, and
// of contracts/ReportVerifier.sol.
import { type Hex, malformedArgument } from '@sealpost/protocol';
import { readArgument } from '../errors.ts';

type Input = { readonly name: string; readonly type: 'address' | 'bytes32' | 'string' | 'uint256' };

const row = <const Name extends string, const Inputs extends readonly Input[]>(
  selector: Hex,
  name: Name,
  inputs: Inputs,
  advice: string,
) => ({ selector, abi: { type: 'error', name, inputs }, advice }) as const;

const configDigest = { name: 'configDigest', type: 'bytes32' } as const;
const feedId = { name: 'feedId', type: 'bytes32' } as const;
const count = <const Name extends string>(name: Name) => ({ name, type: 'uint256' }) as const;

const contractErrors = [
  row(
    '0xef67f5d8',
    'AccessForbidden',
    [],
    'The caller may not do this. Call verify of the proxy, not of the verifier, and ask its owner for access.',
  ),
  row(
    '0x4df18f07',
    'BadVerification',
    [],
    'A signature is not from a registered signer, or two are from the same one. Check the report with verify. Contracts of v0.4 also return this if the fee was not paid.',
  ),
  row(
    '0xb151802b',
    'VerifierNotFound',
    [configDigest],
    'The proxy has no verifier for this config digest. Check the address of the proxy and its chain, or register the signer set with setConfig.',
  ),
  row(
    '0xd990d621',
    'DigestInactive',
    [configDigest],
    'The signer set is deactivated. Use a report of an active signer set.',
  ),
  row(
    '0xfc10a283',
    'DigestInactive',
    [feedId, configDigest],
    'The signer set is deactivated, or not registered for this stream. Use a report of an active signer set.',
  ),
  row('0x74eb4b93', 'DigestNotSet', [configDigest], 'The signer set is not registered. Register it with setConfig.'),
  row(
    '0x8bca6311',
    'DigestNotSet',
    [feedId, configDigest],
    'The signer set is not registered for this stream. Register it with setConfig.',
  ),
  row('0xe3322627', 'DigestEmpty', [], 'The config digest is zero. Pass the one in the context of the reports.'),
  row(
    '0x5348a282',
    'IncorrectSignatureCount',
    [count('numSigners'), count('expectedNumSigners')],
    'The report does not carry f + 1 signatures. Check that f of the contract is that of the signer set.',
  ),
  row(
    '0xf0d31408',
    'MismatchedSignatures',
    [count('rsLength'), count('ssLength')],
    'The report has different numbers of r and s values. Read it again: it was altered.',
  ),
  row(
    '0xa75398e3',
    'NonCanonicalReport',
    [],
    'The report has other bytes than its content needs, such as bytes after its end. Pass fullReport as the API returned it, without a fee token inside.',
  ),
  row(
    '0xae9587eb',
    'RewardsNotSupported',
    [],
    'Sealpost’s own verifier takes no fee and pays no rewards. Leave the list of recipients empty.',
  ),
  row('0xc7af40f0', 'NoSigners', [], 'The report has no signatures. Pass fullReport, not only the body.'),
  row('0x36dbe748', 'InactiveFeed', [feedId], 'The contract has deactivated this stream. Use another stream.'),
  row(
    '0xa25b0b96',
    'InvalidFeed',
    [feedId],
    'The contract does not know this stream. Check the address and the chain.',
  ),
  row('0xbd9f4c2b', 'FeedIdEmpty', [], 'The feed ID is zero. Pass the feed ID of a stream.'),
  row(
    '0xa403c016',
    'CannotDeactivateLatestConfig',
    [feedId, configDigest],
    'The newest signer set cannot be deactivated. Register its successor first.',
  ),
  row(
    '0xb6c405f5',
    'ExpiredReport',
    [],
    'The report has expired: the block is later than expiresAt. Use a newer report.',
  ),
  row(
    '0xf8618030',
    'InvalidQuote',
    [],
    'The fee manager does not accept this fee token. Use the address that its i_linkAddress or i_nativeAddress returns.',
  ),
  row(
    '0xb2e532de',
    'InvalidDeposit',
    [],
    'The value sent is less than the fee. Send what getFeeAndReward of the fee manager returns, for verifyBulk the sum.',
  ),
  row('0xe6c4247b', 'InvalidAddress', [], 'The fee manager cannot be the caller. Call from another address.'),
  row(
    '0xef2af201',
    'InvalidReceivingAddress',
    [],
    'The caller cannot receive the change. Send the exact fee, or make the calling contract payable.',
  ),
  row('0x82b42900', 'Unauthorized', [], 'Only the proxy may call the fee manager. Call verify of the proxy.'),
  row('0x0743bae6', 'FaultToleranceMustBePositive', [], 'f is 0. The contract takes signer sets with f of at least 1.'),
  row(
    '0x61750f40',
    'ExcessSigners',
    [count('numSigners'), count('maxSigners')],
    'The signer set has too many addresses. Use at most maxSigners.',
  ),
  row(
    '0x9dd9e6d8',
    'InsufficientSigners',
    [count('numSigners'), count('minSigners')],
    'The signer set has too few addresses. Use at least minSigners, which is 3f + 1.',
  ),
  row('0xf67bc7c4', 'NonUniqueSignatures', [], 'An address is in the signer set twice. Use each address once.'),
  row('0xd92e233d', 'ZeroAddress', [], 'An address is zero. Pass the address of a signer or a contract.'),
  row('0x961dba88', 'ConfigDigestAlreadySet', [], 'The signer set is already registered. There is nothing to do.'),
  row(
    '0x375d1fe6',
    'ConfigDigestAlreadySet',
    [configDigest, { name: 'verifier', type: 'address' }],
    'The proxy already has a verifier for this config digest. There is nothing to do if it is the one you expect.',
  ),
  row(
    '0x4e01ccfd',
    'VerifierAlreadyInitialized',
    [{ name: 'verifier', type: 'address' }],
    'The proxy already knows this verifier. There is nothing to do.',
  ),
  row('0x75b0527a', 'VerifierInvalid', [], 'The address is not a verifier contract. Check the address.'),
  row('0x82389419', 'FeeManagerInvalid', [], 'The address is not a fee manager contract. Check the address.'),
] as const;

/** Errors of Solidity and of token contracts, which ABIs do not list. */
const solidityErrors = [
  row(
    '0x08c379a0',
    'Error',
    [{ name: 'reason', type: 'string' }],
    'The contract gave the reason as text. If it is about an allowance or a balance, approve the fee token: LINK for the reward manager, wrapped native for the fee manager.',
  ),
  row(
    '0x4e487b71',
    'Panic',
    [count('code')],
    'The contract failed while it read the report. Check the report with verify.',
  ),
];

type ItemsOf<Rows extends readonly { readonly abi: unknown }[]> = { readonly [K in keyof Rows]: Rows[K]['abi'] };

/** The custom errors as items of an ABI. */
export const verifierErrorItems = contractErrors.map(({ abi }) => abi) as unknown as ItemsOf<typeof contractErrors>; // map keeps length and order, and loses them in the type

/** Why a call of the verifier reverted. */
export type VerifierError = {
  /** The first four bytes of the data; `0x` if there is no data. */
  readonly selector: Hex;
  /** Undefined if the error is unknown. */
  readonly name: string | undefined;
  /** The arguments by name: bytes and addresses as hex, numbers as bigint. */
  readonly args: Readonly<Record<string, string | bigint>>;
  /** What happened, and what to do. */
  readonly advice: string;
};

const wordDigits = 64;

/** Names the error in the data of a reverted call of the verifier, its proxy or its fee manager. Unknown data has its selector only. */
export function decodeVerifierError(data: string): VerifierError {
  if (typeof data !== 'string' || !/^0x(?:[0-9a-f]{2})*$/i.test(data))
    return readArgument(() => {
      throw malformedArgument('data', data, 'the data of a reverted call, 0x and an even number of hex digits');
    });
  const selector: Hex = `0x${data.slice(2, 10).toLowerCase()}`;
  const found = [...contractErrors, ...solidityErrors].find((one) => one.selector === selector);
  const args = found && readArgs(found.abi.inputs, data.slice(10).toLowerCase());
  if (found !== undefined && args !== undefined) return { selector, name: found.abi.name, args, advice: found.advice };
  const advice =
    selector === '0x'
      ? 'The call reverted without data. If the proxy has a fee manager, pass a fee token; check the address and the chain.'
      : `The error ${selector} is not one of the verifier’s. Look it up in the ABI of the contracts that were called.`;
  return { selector, name: undefined, args: {}, advice };
}

/** The arguments of an error; undefined if the digits are not exactly those of its inputs. */
const readArgs = (inputs: readonly Input[], digits: string): VerifierError['args'] | undefined => {
  const [only] = inputs;
  if (only?.type === 'string') return readText(only.name, digits);
  if (digits.length !== inputs.length * wordDigits) return undefined;
  return Object.fromEntries(
    inputs.map(({ name, type }, i) => {
      const word = digits.slice(i * wordDigits, (i + 1) * wordDigits);
      if (type === 'uint256') return [name, BigInt(`0x${word}`)];
      return [name, `0x${type === 'address' ? word.slice(24) : word}`];
    }),
  );
};

/** A single argument of type string: an offset, and there a length and the bytes. */
const readText = (name: string, digits: string): VerifierError['args'] | undefined => {
  const countAt = (at: number): number => {
    const word = digits.slice(at, at + wordDigits);
    return word.length === wordDigits ? 2 * Number(`0x${word}`) : Number.NaN;
  };
  const lengthAt = countAt(0);
  const length = countAt(lengthAt);
  const text = digits.slice(lengthAt + wordDigits, lengthAt + wordDigits + length);
  if (text.length !== length) return undefined; // also when there is no offset or no length
  const bytes = Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
  return { [name]: new TextDecoder().decode(bytes) };
};
