// The table of error codes and the error that carries them. Texts here are general; the code that throws adds details. `docs/errors.md`
// has cause and fix for each code (D15).

type ErrorRow = {
  /** HTTP status of the answer. */
  readonly status: number;
  /** Whether the same request may succeed later. */
  readonly retry: boolean;
  /** The general message of `errorOf`. */
  readonly message: string;
};

/** Every error code of the API. */
export const errorTable = {
  malformed_target: { status: 400, retry: false, message: 'The request target is malformed.' },
  repeated_host: { status: 400, retry: false, message: 'The request carries more than one Host header. Send one.' },
  unexpected_body: { status: 400, retry: false, message: 'This API reads no request body. Send none.' },
  missing_header: { status: 400, retry: false, message: 'A required header is missing.' },
  malformed_header: { status: 400, retry: false, message: 'A header has an incorrect value.' },
  repeated_header: { status: 400, retry: false, message: 'A header is present more than once.' },
  clock_skew: { status: 400, retry: false, message: 'The signed timestamp is too far from the server time.' },
  missing_argument: { status: 400, retry: false, message: 'A required query argument is missing.' },
  malformed_argument: { status: 400, retry: false, message: 'A query argument is malformed.' },
  repeated_argument: { status: 400, retry: false, message: 'A query argument is present more than once.' },
  timestamp_out_of_bounds: { status: 400, retry: false, message: 'Timestamp out of bounds.' },
  unknown_origin: {
    status: 400,
    retry: false,
    message: 'X-Cll-Origin names an unknown origin.',
  },
  unauthorized: { status: 401, retry: false, message: 'Authentication failed: unknown user or wrong signature.' },
  stream_not_accessible: {
    status: 401,
    retry: false,
    message: 'A requested stream does not exist or this account may not read it.',
  },
  signature_used: {
    status: 401,
    retry: false,
    message: 'This signature was used for a live connection before. Sign the request again, with the current time.',
  },
  route_not_found: { status: 404, retry: false, message: 'There is no such path. The API is under /api/v1/.' },
  report_not_found: { status: 404, retry: true, message: 'No report is valid at the requested time.' },
  method_not_allowed: { status: 405, retry: false, message: 'This path answers GET and HEAD only.' },
  request_timeout: { status: 408, retry: true, message: 'The request did not arrive in time.' },
  upgrade_required: {
    status: 426,
    retry: false,
    message: 'This path supports WebSocket only. Send an Upgrade request.',
  },
  rate_limited: { status: 429, retry: true, message: 'The rate limit of this account is exceeded.' },
  too_many_failures: { status: 429, retry: true, message: 'Too many failed requests from this address.' },
  too_many_sockets: { status: 429, retry: true, message: 'This account has reached its limit of live connections.' },
  head_too_large: { status: 431, retry: false, message: 'The request line and headers are too large.' },
  internal_error: { status: 500, retry: true, message: 'Unexpected error. Report the request ID.' },
  store_unavailable: { status: 503, retry: true, message: 'The storage is unavailable. Try again shortly.' },
  overloaded: { status: 503, retry: true, message: 'The service is overloaded. Try again shortly.' },
  draining: { status: 503, retry: true, message: 'This node is shutting down. Try again shortly.' },
} as const satisfies Record<string, ErrorRow>;

export type ErrorCode = keyof typeof errorTable;

/** What an error has besides its message: `argument`, `header`, `serverTimeMs`… JSON values only. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/**
 * An error of the API with its code. It does not use the table: parsers throw it in browsers too, where the table's texts would be 5 % of what
 * a page loads.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }
}

/** An error with the table's message. */
export const errorOf = (code: ErrorCode, details?: ErrorDetails, options?: ErrorOptions): ApiError =>
  new ApiError(code, errorTable[code].message, details, options);

/** The HTTP status of an error. */
export const statusOf = ({ code }: ApiError): number => errorTable[code].status;

/** The body of an error response. `error` and `message` are the same text: existing clients read one or the other (D15). */
export type ErrorJson = {
  readonly error: string;
  readonly message: string;
  readonly code: string;
  readonly requestId: string;
} & ErrorDetails;

/** Renders an error for the wire. Details never replace the four fixed keys. */
export function toErrorJson(error: Pick<ApiError, 'code' | 'message' | 'details'>, requestId: string): ErrorJson {
  const fixed = { error: error.message, message: error.message, code: error.code, requestId };
  return { ...fixed, ...error.details, ...fixed };
}

/** Untrusted text in one line, without control characters and characters that change the writing direction. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').trim();

/** The longest piece of a caller's input that an error repeats. */
const echoedCharactersMax = 80;

/** A value as JSON, for messages. What JSON cannot have, or nests too deeply to be printed, is `[object Array]` or alike. */
export function jsonTextOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

/** The error that every parser throws: argument, received value, expected form. */
export function malformedArgument(argument: string, received: unknown, expected: string): ApiError {
  const json = jsonTextOf(received);
  const shown = json.length > echoedCharactersMax ? `${json.slice(0, echoedCharactersMax)}…` : json;
  return new ApiError('malformed_argument', `${argument} is ${shown}, expected ${expected}.`, { argument, expected });
}
