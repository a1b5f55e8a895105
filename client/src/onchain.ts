// The entry point `@sealpost/client/onchain`: what a program needs to verify reports with the published verifier contracts.

export type { Hex, SignerSet } from '@sealpost/protocol';
export type { AnyReport } from './decode.ts';
export { SealpostError, type SealpostErrorCode } from './errors.ts';
export { verifierAbi, verifierProxyAbi } from './onchain/abi.ts';
export {
  feeTokens,
  setConfigCalldata,
  verifierFunctions,
  verifyBulkCalldata,
  verifyCalldata,
} from './onchain/calldata.ts';
export { decodeVerifierError, type VerifierError } from './onchain/verifier-errors.ts';
