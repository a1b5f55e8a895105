// The two encodings of the fee token for a verifier contract. The server does not use them (D20).
import { parseAddress } from './primitives/address.ts';
import type { Hex } from './primitives/hex-bytes.ts';
import { decodeFullReport, encodeEnvelope } from './report.ts';

/** Newer contracts: the second argument of `verify`; no token means billing by subscription, which takes empty bytes. */
export const feeTokenArgument = (feeToken?: string): Hex =>
  feeToken === undefined ? '0x' : `0x${parseAddress(feeToken, 'feeToken').slice(2).padStart(64, '0')}`;

/** Older contracts: the report's own payload with the token as a sixth element of its tuple. */
export const appendFeeToken = (fullReport: string, feeToken: string): Hex =>
  encodeEnvelope(decodeFullReport(fullReport), [feeTokenArgument(feeToken)]);
