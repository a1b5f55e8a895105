// The package's entry point. The subpaths ./request-signing and ./report-json are for programs that only sign or render.

export * from './api.ts';
export * from './backoff.ts';
export * from './bodies.ts';
export * from './catalog.ts';
export * from './errors.ts';
export * from './fee-token.ts';
export * from './feed-id.ts';
export * from './limits.ts';
export * from './parameters.ts';
export { arrayTail, bytesArrayTail, bytesTail, encodeTuple, type Tail } from './primitives/abi-words.ts';
export * from './primitives/address.ts';
export type { Hex } from './primitives/hex-bytes.ts';
export * from './primitives/real-date.ts';
export * from './primitives/trailing.ts';
export * from './query.ts';
export * from './report.ts';
export * from './report-json.ts';
export * from './report-schemas.ts';
export * from './report-signature.ts';
export * from './request-cost.ts';
export * from './request-signing.ts';
export * from './stream-names.ts';
