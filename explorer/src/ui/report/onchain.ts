// A report as a call of a verifier contract: calldata, arguments and a `cast` command, by function and fee token.
import { withFeeToken } from '@sealpost/client';
import { feeTokens, verifierFunctions, verifyBulkCalldata, verifyCalldata } from '@sealpost/client/onchain';

/** What is called. `older` contracts take one argument, with the fee token inside the report. */
export const onchainFunctions = {
  verify: { title: 'verify', about: 'One report.' },
  verifyBulk: { title: 'verifyBulk', about: 'Several reports in one call; here it has this one.' },
  older: { title: 'verify with one argument', about: 'Older contracts: the fee token is inside the report.' },
} as const;

export type OnchainFunction = keyof typeof onchainFunctions;

const chainNames: Readonly<Record<keyof typeof feeTokens, string>> = {
  1: 'Ethereum',
  8453: 'Base',
  42161: 'Arbitrum One',
};

/** Fee tokens to choose from, by address. */
export const feeTokenChoices: readonly { readonly address: string; readonly title: string }[] = Object.entries(
  feeTokens,
).flatMap(([id, { native, link }]) => {
  const chain = chainNames[Number(id) as keyof typeof feeTokens]; // a key of the table
  return [
    { address: native, title: `${chain}: native (wrapped)` },
    { address: link, title: `${chain}: LINK` },
  ];
});

export type OnchainValue = { readonly name: string; readonly about: string; readonly hex: string };

export type OnchainCall = {
  /** Calldata and arguments; only the argument for older contracts. */
  readonly values: readonly OnchainValue[];
  readonly cast: string;
};

/** Variables of the environment, as `sealpost sandbox --chain` prints them. */
const placeholders = { to: '"$SEALPOST_VERIFIER"', rpc: '--rpc-url "$SEALPOST_RPC_URL"' } as const;

/** The call for a report. Throws `malformed_argument` if the fee token is not an address, for older contracts also if it is missing. */
export function createOnchainCall(
  fullReport: string,
  name: OnchainFunction,
  feeToken: string | undefined,
): OnchainCall {
  if (name === 'older') {
    const [payload] = withFeeToken(fullReport, feeToken ?? '', 'appended');
    return {
      values: [{ name: 'payload', about: 'the report with the fee token inside', hex: payload }],
      cast: `cast call ${placeholders.to} 'verify(bytes)(bytes)' ${payload} ${placeholders.rpc}`,
    };
  }
  const [payload, parameter] = withFeeToken(fullReport, feeToken);
  const isBulk = name === 'verifyBulk';
  const calldata = isBulk ? verifyBulkCalldata([fullReport], feeToken) : verifyCalldata(fullReport, feeToken);
  const { signature } = verifierFunctions[name];
  const [results, argument] = isBulk ? ['(bytes[])', `'[${payload}]'`] : ['(bytes)', payload];
  return {
    values: [
      { name: 'calldata', about: signature, hex: calldata },
      { name: isBulk ? 'payloads[0]' : 'payload', about: 'the report unchanged', hex: payload },
      {
        name: 'parameterPayload',
        about: feeToken === undefined ? 'empty: no fee token' : 'the fee token',
        hex: parameter,
      },
    ],
    cast: `cast call ${placeholders.to} '${signature}${results}' ${argument} ${parameter} ${placeholders.rpc}`,
  };
}
