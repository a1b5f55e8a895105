// The calls as functions, for web pages that need few of them: bundlers drop what is not imported, which they cannot do with the methods of the one
// object that `createClient` makes (D157). Streams are given by feed ID; the catalog's names and `latestMany` are the client's.
import { type ClientOptions, readOptions } from './options.ts';
import { createRequester, type Requester } from './request/requester.ts';

/** What the calls send their requests with. Wrong options throw here, and nothing is sent yet. */
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
  type CandlesResult,
  type Coverage,
  type CoverageResult,
  candles,
  coverage,
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
