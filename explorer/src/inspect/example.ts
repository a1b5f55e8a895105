// The example for users without an account: a report from the protocol's test vectors, and the signer set of its network.
import type { SignerSetsJson } from '@sealpost/protocol';
import vectors from '@sealpost/protocol/vectors/verification.json' with { type: 'json' };

export const shippedExample: { readonly fullReport: string; readonly signers: SignerSetsJson } = {
  fullReport: vectors.cases.find(({ name }) => name === '2 of 4 signers')?.fullReport ?? '',
  signers: vectors.signerSets,
};
