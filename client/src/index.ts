// The package's entry point: its functions, and every type that they take or return.

export type {
  CatalogEntry,
  FeedId,
  Hex,
  ReportBody,
  ReportJson,
  RequestToSign,
  SignerSet,
  SignerSets,
  SignerSetsJson,
  StreamDifference,
} from '@sealpost/protocol';
export { signRequest } from '@sealpost/protocol';
export { type BackoffRules, backOffMs, type ReconnectRules } from './backoff.ts';
export { type Client, createClient } from './client.ts';
export type { ClientEvent, ClientWarning } from './client-events.ts';
export { type AnyReport, type DecodedReport, decode, formatDecimal } from './decode.ts';
export type { CatalogResult, DiscoveryFilters } from './discovery.ts';
export { SealpostError, type SealpostErrorCode } from './errors.ts';
export type { ClientOptions } from './options.ts';
export type { PagesOptions } from './pages.ts';
export type {
  BulkReports,
  Candle,
  CandleRange,
  CandlesManyResult,
  CandlesResult,
  Coverage,
  CoverageManyResult,
  CoverageResult,
  FeedsResult,
  MissingReport,
  OneReport,
  ReportPage,
  ServiceStatus,
  SignersResult,
  StatusResult,
  StreamCoverage,
  TimeRange,
  TimeResult,
} from './reads.ts';
export type { AnswerDetails } from './request/answer.ts';
export type { CallOptions, Sleep } from './request/call.ts';
export type { Credentials, CredentialsSource, SecretSource } from './request/credentials.ts';
export type { TransportName } from './stream/choice.ts';
export type { StaleStream } from './stream/staleness.ts';
export type { ConnectionState, StreamGap, StreamState } from './stream/state.ts';
export type { ReportStream, StreamOptions } from './stream/stream.ts';
export { type FeeTokenEncoding, type Verdict, type VerifyFailure, verify, withFeeToken } from './verify.ts';
