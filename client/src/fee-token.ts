// The arguments for a verifier contract, with the fee token in the encoding that the contract takes.
import { appendFeeToken, feeTokenArgument, type Hex } from '@sealpost/protocol';
import { type AnyReport, fullReportOf, readFormat } from './decode.ts';
import { readArgument } from './errors.ts';

/** `argument`: for newer contracts, which take the token as a second argument. `appended`: for older ones, which take it inside the report. */
export type FeeTokenEncoding = 'argument' | 'appended';

/**
 * The arguments for the verifier contract's `verify`, to spread into the call. `argument` returns two, the report and the token (empty bytes
 * without a token: billing by subscription); `appended` returns one, the report with the token inside.
 */
export function withFeeToken(report: AnyReport, feeToken?: string, encoding?: 'argument'): readonly [Hex, Hex];
export function withFeeToken(report: AnyReport, feeToken: string, encoding: 'appended'): readonly [Hex];
export function withFeeToken(
  report: AnyReport,
  feeToken?: string,
  encoding: FeeTokenEncoding = 'argument',
): readonly Hex[] {
  const fullReport = fullReportOf(report);
  const toArguments = (): readonly Hex[] =>
    encoding === 'appended'
      ? [appendFeeToken(fullReport, feeToken ?? '')] // without a token, the parser's error names it
      : [fullReport as Hex, feeTokenArgument(feeToken)]; // text of a report; the contract checks the bytes
  return readFormat(() => readArgument(toArguments));
}
