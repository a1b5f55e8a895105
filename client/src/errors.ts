// The one error that the client throws: what happened, and what to do about it. It never contains a secret or a signature.
import { ApiError, type ErrorCode } from '@sealpost/protocol';

/** Failures that come from the client, not from a server. */
const clientFailures = {
  invalid_option: { retry: false, advice: 'Correct the option.' },
  missing_credentials: {
    retry: false,
    advice: 'Give createClient a userId and a secret. Without them, only discovery, signers, time and status work.',
  },
  secret_unavailable: {
    retry: true,
    advice: 'Check the secret function that createClient was given: the cause is what it threw.',
  },
  network_error: {
    retry: true,
    advice: 'Check the network, the base URL and the server. Give several base URLs for fail-over.',
  },
  timeout: { retry: true, advice: 'Try again, or allow more time with timeoutMs.' },
  aborted: { retry: false, advice: 'The signal given to the call ended it.' },
  malformed_report: { retry: false, advice: 'Pass a report as the API returns it, or its fullReport.' },
  unknown_schema: {
    retry: false,
    advice: 'Read the body yourself, or update this package. verify still checks the report.',
  },
  unknown_stream: {
    retry: false,
    advice: 'Use a name from the catalog: discovery() lists them, details.similar has similar ones.',
  },
  ambiguous_stream: {
    retry: false,
    advice: 'Use the full name or feed ID of one stream: details.streams lists them and how they differ.',
  },
  unexpected_answer: {
    retry: false,
    advice: 'Check the base URL, and any proxy in front of the server.',
  },
  not_supported: { retry: false, advice: 'Use a server that supports it.' },
  invalid_page: {
    retry: false,
    advice: 'Reading further would lose or repeat reports. Report this to the server’s operator.',
  },
} as const satisfies Record<string, { readonly retry: boolean; readonly advice: string }>;

export type ClientFailure = keyof typeof clientFailures;

/** Advice for server errors whose message does not say what to do. */
const advices: Readonly<Partial<Record<ErrorCode, string>>> = {
  clock_skew: 'Synchronize the clock of this machine.',
  unauthorized: 'Check the user ID and secret; the account may be disabled.',
  stream_not_accessible: 'List the streams that you may read with feeds().',
  timestamp_out_of_bounds: 'Request a later time.',
  report_not_found: 'details.reason says why, details.previous and details.next are the nearest reports.',
  route_not_found: 'The server may run another release, or a proxy may answer for it.',
  upgrade_required: 'A proxy in front of the server blocks WebSockets: allow them, or use the transport sse.',
  head_too_large: 'Request fewer streams at once.',
  rate_limited: 'Send fewer requests, or set retryRateLimited to wait and retry.',
  too_many_failures: 'Fix the failing requests before you retry.',
  internal_error: 'Send the request ID to the server’s operator.',
};

const adviceOnRetry = 'Try again shortly.';
const adviceOnMistake = 'Change the request: the same one fails again.';

/** Codes of the server, of the client, and any that a later server may send. */
export type SealpostErrorCode = ErrorCode | ClientFailure | (string & {});

export type SealpostErrorParts = {
  readonly status?: number | undefined;
  readonly requestId?: string | undefined;
  /** What the server sends besides the message: `reason`, `argument`, `serverTimeMs`… */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
  /** Replaces the advice of the code. */
  readonly advice?: string;
  /** The server sent no code; it is inferred from the status. */
  readonly isInferred?: boolean;
};

/** Why a call failed. */
export class SealpostError extends Error {
  override readonly name = 'SealpostError';
  readonly code: SealpostErrorCode;
  /** HTTP status; undefined if no response came. */
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  /** What to do about it. */
  readonly advice: string;
  /** True if the same call may succeed later. */
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;
  /** True if the server sent no code, as servers other than Sealpost do: `code` is inferred from the status. */
  readonly isInferred: boolean;

  constructor(code: SealpostErrorCode, message: string, parts: SealpostErrorParts = {}) {
    super(message, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.code = code;
    this.status = parts.status;
    this.requestId = parts.requestId;
    this.retryable = isRetryable(code, parts.status);
    this.advice = parts.advice ?? adviceOn(code, this.retryable);
    this.isInferred = parts.isInferred ?? false;
    this.details = parts.details ?? {};
  }

  /** For logs: includes the message, which JSON.stringify leaves out of errors. */
  toJSON(): Readonly<Record<string, unknown>> {
    const { name, message, code, status, requestId, advice, retryable, details } = this;
    return { name, message, code, status, requestId, advice, retryable, details };
  }
}

const isClientFailure = (code: string): code is ClientFailure => Object.hasOwn(clientFailures, code);

// The same as the server's table, without loading it: by status, except that a missing report may still arrive. Works for codes of later servers.
const isRetryable = (code: string, status = 0): boolean => {
  if (isClientFailure(code)) return clientFailures[code].retry;
  return code === 'report_not_found' || status >= 500 || status === 429 || status === 408;
};

const adviceOn = (code: string, retryable: boolean): string => {
  if (isClientFailure(code)) return clientFailures[code].advice;
  const own = Object.hasOwn(advices, code) ? advices[code as ErrorCode] : undefined; // a key of the table
  return own ?? (retryable ? adviceOnRetry : adviceOnMistake);
};

/** Runs a parser on a caller's value and turns its ApiError into a SealpostError. */
export function readArgument<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) throw new SealpostError(error.code, error.message, { details: error.details });
    throw error;
  }
}
