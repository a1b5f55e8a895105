// The calls as functions, for web pages: bundlers drop those that are not imported, which they cannot do with the methods of a client (D157).
// They take feed IDs only; stream names and `latestMany` need a client.
import { type ClientOptions, readOptions } from './options.ts';
import { createRequester, type Requester } from './request/requester.ts';

/** Makes the requester that the calls send their requests with. Throws on invalid options; sends nothing yet. */
export const openRequester = (options: ClientOptions): Requester => createRequester(readOptions(options));

export type { ReportJson, SignerSetsJson } from '@sealpost/protocol';
export type { ClientEvent, ClientWarning } from './client-events.ts';
export { type CatalogResult, type DiscoveryFilters, discovery } from './discovery.ts';
export type { ClientOptions } from './options.ts';
export { type PagesOptions, pages } from './pages.ts';
export {
  at,
  type BulkReports,
  bulk,
  type Candle,
  type CandleRange,
  type CandlesManyResult,
  type CandlesResult,
  type Coverage,
  type CoverageManyResult,
  type CoverageResult,
  candles,
  candlesMany,
  coverage,
  coverageMany,
  type FeedsResult,
  feeds,
  latest,
  type MissingReport,
  type OneReport,
  page,
  type ReportPage,
  type ServiceStatus,
  type SignersResult,
  type StatusResult,
  type StreamCoverage,
  signers,
  status,
  type TimeRange,
  type TimeResult,
  time,
} from './reads.ts';
export type { AnswerDetails } from './request/answer.ts';
export type { CallOptions, Sleep } from './request/call.ts';
export type { Credentials, CredentialsSource, SecretSource } from './request/credentials.ts';
export type { Requester } from './request/requester.ts';
export { type ReportStream, type StreamOptions, stream } from './stream/stream.ts';
