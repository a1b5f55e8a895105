// Turns errors into answers: the only catch of the read path. A caller's mistake is explained in full, an operating failure is 503, and anything else
// is our bug and returns only its request ID.
import { ApiError, errorOf, statusOf, toErrorJson } from '@sealpost/protocol';
import { CorruptRecordError, StoreError } from '../store/store.ts';
import type { Answer } from './answer.ts';

/** Not 503: a retry would not help. */
const damagedText = 'A record needed for this answer is damaged in the store.';

/** Names an error as the API does. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof CorruptRecordError)
    return new ApiError(
      'report_not_found',
      damagedText,
      { reason: 'damaged', previous: null, next: null },
      { cause: error },
    );
  if (error instanceof StoreError) return errorOf('store_unavailable', {}, { cause: error });
  return errorOf('internal_error', {}, { cause: error });
}

/** The answer that an error becomes. */
export type ErrorAnswer = Answer & { readonly body: string };

/** What a 426 must name: the protocol (RFC 9110, 15.5.22) and its version (RFC 6455, 4.4). `Connection` is with every answer (answer.ts). */
const upgradeHeaders = ['Upgrade', 'websocket', 'Sec-WebSocket-Version', '13'];

/** Renders an error. 429 and 503 carry `retryAfterSeconds`. */
export function toProblem(error: ApiError, requestId: string, retryAfterSeconds: number): ErrorAnswer {
  const { code, message } = error;
  const { allow, ...details } = error.details;
  const headers: string[] = [];
  const status = statusOf(error);
  if (status === 429 || status === 503) headers.push('Retry-After', String(retryAfterSeconds));
  if (status === 426) headers.push(...upgradeHeaders);
  if (typeof allow === 'string') headers.push('Allow', allow);
  const body = JSON.stringify(toErrorJson({ code, message, details }, requestId));
  const answer = { status, body, cacheControl: 'no-store', headers };
  return asciiText.test(body) ? { ...answer, ascii: true } : answer;
}

/** Nearly all errors are, and go out in one write. */
const asciiText = /^[\x20-\x7e]*$/;
