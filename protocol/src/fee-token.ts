// Owns the fee token's two encodings, for whoever passes a report to a verifier contract. The server never uses them (D20).
import * as AbiParameters from 'ox/AbiParameters';
import type * as Hex from 'ox/Hex';
import { parseAddress } from './address.ts';
import { decodeFullReport, envelopeParameters, toEnvelopeValues } from './report.ts';

/** Newer contracts: the second argument of `verify`; no token means billing by subscription, which takes empty bytes. */
export const feeTokenArgument = (feeToken?: string): Hex.Hex =>
  feeToken === undefined ? '0x' : AbiParameters.encode([{ type: 'address' }], [parseAddress(feeToken, 'feeToken')]);

/** Older contracts: the report's own payload with the token as a sixth element of its tuple. */
export const appendFeeToken = (fullReport: string, feeToken: string): Hex.Hex =>
  AbiParameters.encode(
    [...envelopeParameters, { type: 'bytes' }],
    [...toEnvelopeValues(decodeFullReport(fullReport)), feeTokenArgument(feeToken)],
  );
