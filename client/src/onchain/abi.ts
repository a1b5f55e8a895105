// The ABI of the published verifier contracts, as far as readers and operators of reports call them. For viem, ox and other typed libraries.
import { verifierErrorItems } from './verifier-errors.ts';

/** VerifierProxy 2.0.0: what verifies reports on-chain, and the errors that it, the verifier and the fee manager revert with. */
export const verifierProxyAbi = [
  {
    type: 'function',
    name: 'verify',
    stateMutability: 'payable',
    inputs: [
      { name: 'payload', type: 'bytes' },
      { name: 'parameterPayload', type: 'bytes' },
    ],
    outputs: [{ name: '', type: 'bytes' }],
  },
  {
    type: 'function',
    name: 'verifyBulk',
    stateMutability: 'payable',
    inputs: [
      { name: 'payloads', type: 'bytes[]' },
      { name: 'parameterPayload', type: 'bytes' },
    ],
    outputs: [{ name: 'verifiedReports', type: 'bytes[]' }],
  },
  ...verifierErrorItems,
] as const;

/** Verifier 2.0.0 (contracts v0.5.0): what registers a signer set. Earlier versions take other arguments. */
export const verifierAbi = [
  {
    type: 'function',
    name: 'setConfig',
    stateMutability: 'nonpayable',
    inputs: [
      { name: 'configDigest', type: 'bytes32' },
      { name: 'signers', type: 'address[]' },
      { name: 'f', type: 'uint8' },
      {
        name: 'recipientAddressesAndWeights',
        type: 'tuple[]',
        components: [
          { name: 'addr', type: 'address' },
          { name: 'weight', type: 'uint64' },
        ],
      },
    ],
    outputs: [],
  },
  ...verifierErrorItems,
] as const;
