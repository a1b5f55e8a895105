// Sealpost extends the specification; other servers do not. The client tries each extension, and does without it if the server rejects it (D96).
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
export const withExtension = async <T>(
  { lacks }: Pick<Requester, 'lacks'>,
  extension: string,
  ask: (extended: boolean) => Promise<T>,
): Promise<T> => {
  if (lacks?.has(extension)) return ask(false);
  try {
    return await ask(true);
  } catch (error) {
    if (!mayRefuseParameter(error)) throw error;
    const answer = await ask(false);
    lacks?.add(extension);
    return answer;
  }
};

/** Reads a route that is an extension. On a server without it, the error is `not_supported`, with what to do instead. */
export const readExtension = async <T>(what: string, advice: string, read: () => Promise<T>): Promise<T> => {
  try {
    return await read();
  } catch (error) {
    if (!isAbsent(error)) throw error;
    const { status, requestId, details } = error;
    const message = `This server has no ${what} (${status}).`;
    throw new SealpostError('not_supported', message, { status, requestId, details, advice, cause: error });
  }
};
