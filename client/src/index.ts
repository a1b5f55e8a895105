// The client's front door.
export { signRequest } from '@sealpost/protocol';
export type { StreamGap } from './backfill.ts';
export { type Client, createClient } from './client.ts';
export { type AnyReport, type DecodedReport, decode, formatDecimal } from './decode.ts';
export type { DiscoveryFilters } from './discovery.ts';
export { SealpostError, type SealpostErrorCode } from './errors.ts';
export { type FeeTokenEncoding, withFeeToken } from './fee-token.ts';
export type { ClientOptions, ClientWarning } from './options.ts';
export type { PagesOptions } from './pages.ts';
export type { BulkReports, Candle, MissingReport, OneReport, ReportPage, Span } from './reads.ts';
export type { AnswerDetails, CallOptions } from './requester.ts';
export type { ReportStream, StreamOptions } from './stream.ts';
export type { StreamState } from './stream-state.ts';
export { type Verdict, type VerifyFailure, verify } from './verify.ts';
