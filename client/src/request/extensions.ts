// Other servers have less than Sealpost. The client tries each extension, and does without it if the server rejects it (D96); it asks for as much
// at once as Sealpost allows, and for less if that is rejected (D251).
import { limits } from '@sealpost/protocol';
import { SealpostError } from '../errors.ts';
import type { Requester } from './requester.ts';

const absentCodes: readonly string[] = ['route_not_found', 'method_not_allowed'];

/** Whether the server lacks the route: 404, 405 or 501 that is not about a report, or a response that is not from that route. */
export const isAbsent = (error: unknown): error is SealpostError =>
  error instanceof SealpostError &&
  (error.code === 'not_supported' ||
    ([404, 405, 501].includes(error.status ?? 0) &&
      (absentCodes.includes(error.code) || (error.isInferred && error.code !== 'report_not_found'))));

// A server with error codes is a Sealpost server: it knows the parameters, or ignores them.
const mayRefuseParameter = (error: unknown): boolean =>
  error instanceof SealpostError && error.isInferred && [400, 401, 404].includes(error.status ?? 0);

/** Sends a request with an extension, and without it if the server may have rejected that. If it then answers, the extension is not tried again. */
export async function withExtension<T>(
  { lacks }: Pick<Requester, 'lacks'>,
  extension: string,
  ask: (extended: boolean) => Promise<T>,
): Promise<T> {
  if (lacks?.has(extension)) return ask(false);
  try {
    return await ask(true);
  } catch (error) {
    if (!mayRefuseParameter(error)) throw error;
    const answer = await ask(false);
    lacks?.add(extension);
    return answer;
  }
}

/** Reads a route that is an extension. On a server without it, the error is `not_supported`, with what to do instead. */
export async function readExtension<T>(what: string, advice: string, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isAbsent(error)) throw error;
    const { status, requestId, details } = error;
    const message = `This server has no ${what} (${status}).`;
    throw new SealpostError('not_supported', message, { status, requestId, details, advice, cause: error });
  }
}

/** What is tried after a rejected limit; then the server's default. */
const smallerLimits = [500, 100, 50, 20];

/** Whether the request may have asked for too much at once; another request shows it. */
const mayBeTooMuch = (error: unknown): boolean =>
  error instanceof SealpostError && error.status === 400 && error.code !== 'timestamp_out_of_bounds';

/**
 * Reads a page of up to `limit` reports. After a 400 it is asked without a limit, which shows whether that was the reason, then with smaller ones.
 * The one that is accepted is remembered; the error of another reason is that of the first request.
 */
export async function withPageLimit<T>(
  { bounds = {} }: Pick<Requester, 'bounds'>,
  limit: number,
  ask: (limit: number | undefined) => Promise<T>,
): Promise<T> {
  const most = Math.min(limit, bounds.limit ?? limit);
  if (most === 0) return ask(undefined);
  try {
    return await ask(most);
  } catch (error) {
    if (!mayBeTooMuch(error)) throw error;
    const rest = smallerLimits.filter((smaller) => smaller < most);
    const page = await ask(undefined).catch((other) => Promise.reject(mayBeTooMuch(other) ? error : other));
    for (const smaller of rest) {
      bounds.limit = smaller; // before it is tried: after a 429, the next call continues here
      try {
        return await ask(smaller);
      } catch (other) {
        if (!mayBeTooMuch(other)) throw other;
      }
    }
    bounds.limit = 0;
    return page;
  }
}

/**
 * Reads streams in as few requests as the server allows, in order. After a 400, one stream is read alone, which shows whether their number was the
 * reason, then half as many at once.
 */
export async function inParts<I, T>(
  { bounds = {} }: Pick<Requester, 'bounds'>,
  ids: readonly I[],
  ask: (part: readonly I[]) => Promise<T>,
): Promise<readonly T[]> {
  const answers: T[] = [];
  let [most, next] = [bounds.feedIds ?? limits.feedIdsMax, 0];
  let refused: unknown;
  for (let start = 0; start < ids.length; ) {
    const part = ids.slice(start, start + (next || most));
    try {
      answers.push(await ask(part));
      start += part.length;
      next = 0;
    } catch (error) {
      if (!mayBeTooMuch(error)) throw error;
      refused ??= error;
      if (part.length === 1) throw refused;
      most = Math.ceil(part.length / 2);
      next = 1;
    }
  }
  if (refused !== undefined) bounds.feedIds = most;
  return answers;
}
