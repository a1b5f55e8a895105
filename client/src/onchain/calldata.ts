// The calldata of calls to the published verifier contracts. Tests compare every byte with ox's encoder.

import {
  arrayTail,
  bytesArrayTail,
  bytesTail,
  decodeFullReport,
  encodeFullReport,
  encodeTuple,
  feeTokenArgument,
  type Hex,
  malformedArgument,
  parseSignerSet,
  type SignerSet,
  type Tail,
} from '@sealpost/protocol';
import { type AnyReport, fullReportOf, readFormat } from '../decode.ts';
import { readArgument, SealpostError } from '../errors.ts';

/** The functions that this module encodes calls of: signature, and the first four bytes of its hash. */
export const verifierFunctions = {
  verify: { signature: 'verify(bytes,bytes)', selector: '0xf7e83aee' },
  verifyBulk: { signature: 'verifyBulk(bytes[],bytes)', selector: '0xf873a61c' },
  setConfig: { signature: 'setConfig(bytes32,address[],uint8,(address,uint64)[])', selector: '0x41e3df58' },
} as const;

const encodeCall = (name: keyof typeof verifierFunctions, elements: readonly (string | Tail)[]): Hex =>
  `${verifierFunctions[name].selector}${encodeTuple(elements).slice(2)}`;

/**
 * Calldata of `verify` of the verifier proxy. `feeToken` is the address of the token that pays the fee; without it, the contract gets empty
 * bytes, as billing by subscription takes. Throws `malformed_report` on what is not a report.
 */
export function verifyCalldata(report: AnyReport, feeToken?: string): Hex {
  const payload = readFormat(() => normalize(report));
  return encodeCall('verify', [bytesTail(payload), bytesTail(readArgument(() => feeTokenArgument(feeToken)))]);
}

/** Calldata of `verifyBulk`, which verifies several reports, and pays for all, in one call. The order of the reports is kept. */
export function verifyBulkCalldata(reports: readonly AnyReport[], feeToken?: string): Hex {
  const parameter = readArgument(() => {
    if (Array.isArray(reports) && reports.length > 0) return feeTokenArgument(feeToken);
    throw malformedArgument('reports', reports, 'a list of reports');
  });
  const payloads = reports.map((report, i) => naming(`reports[${i}]`, () => readFormat(() => normalize(report))));
  return encodeCall('verifyBulk', [bytesArrayTail(payloads), bytesTail(parameter)]);
}

/** A report in its only canonical encoding, lower case. */
const normalize = (report: AnyReport): Hex => encodeFullReport(decodeFullReport(fullReportOf(report)));

/** Puts the argument with a malformed report in front of the message. */
const naming = <T>(argument: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SealpostError)) throw error;
    const { code, message, details } = error;
    throw new SealpostError(code, `${argument}: ${message}`, { details, cause: error });
  }
};

/**
 * Calldata of `setConfig` of Verifier 2.0.0 (contracts v0.5.0), which registers a signer set; only the owner of the contract may call it. The
 * list of reward recipients is empty: the owner of the fee manager sets them.
 */
export function setConfigCalldata(signerSet: SignerSet): Hex {
  const { configDigest, f, addresses } = readArgument(() => readRegistrable(signerSet));
  return encodeCall('setConfig', [
    configDigest.slice(2),
    arrayTail(addresses.map((address) => address.slice(2).padStart(64, '0'))),
    f.toString(16).padStart(64, '0'),
    arrayTail([]),
  ]);
}

/** A signer set that the contract accepts: it rejects f = 0 and the zero address. */
const readRegistrable = (raw: SignerSet): SignerSet => {
  const { configDigest }: { readonly configDigest?: unknown } = Object(raw);
  const set = parseSignerSet(String(configDigest), raw, 'signerSet');
  if (set.f === 0) throw malformedArgument('signerSet.f', set.f, 'at least 1: the contract rejects 0');
  const zero = set.addresses.findIndex((address) => /^0x0+$/.test(address));
  if (zero === -1) return set;
  throw malformedArgument(`signerSet.addresses[${zero}]`, set.addresses[zero], 'the address of a signer, not zero');
};

/**
 * Chain ID → addresses of the wrapped native token and of LINK. For other chains, `i_nativeAddress()` and `i_linkAddress()` of the fee manager
 * return them.
 */
export const feeTokens = {
  /** Ethereum */
  1: {
    native: '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2',
    link: '0x514910771af9ca656af840dff83e8264ecf986ca',
  },
  /** Base */
  8453: {
    native: '0x4200000000000000000000000000000000000006',
    link: '0x88fb150bdc53a65fe94dea0c9ba0a6daf8c6e196',
  },
  /** Arbitrum One */
  42161: {
    native: '0x82af49447d8a07e3bd95bd0d56f35241523fbab1',
    link: '0xf97f4df75117a78c1a5a0dbb814af92458539fb4',
  },
} as const satisfies Readonly<Record<number, { readonly native: Hex; readonly link: Hex }>>;
