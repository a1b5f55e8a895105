// One request of "Try it" and its answer, bounded.
import type { SentRequest } from '../../state/send.ts';
import type { Session } from '../../state/session.ts';

export type TriedRequest = {
  readonly method: 'GET' | 'HEAD';
  readonly target: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isSigned: boolean;
};

export type Exchange = {
  /** What was sent, the signature included. */
  readonly sentHeaders: Readonly<Record<string, string>>;
  readonly status: number;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly tookMs: number;
  readonly body: Blob;
  readonly text: string;
  /** Whether the body was longer than `bodyBytesMax`, and the rest was not read. */
  readonly isCut: boolean;
};

/** Longest body that is read. */
export const bodyBytesMax = 16 * 2 ** 20;

/** The headers that matter to a reader, in this order. */
const headerNames = [
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'Content-Type',
  'ETag',
  'Link',
  'Cache-Control',
  'Sealpost-Missing',
  'X-Cll-Available-Origins',
];

/** The shown headers of a response. */
export const headersOf = (headers: Headers): Exchange['headers'] =>
  headerNames.flatMap((name) => {
    const value = headers.get(name);
    return value === null ? [] : [[name, value] as const];
  });

const readBody = async (response: Response): Promise<{ readonly chunks: BlobPart[]; readonly isCut: boolean }> => {
  const chunks: BlobPart[] = [];
  const reader = response.body?.getReader();
  let bytes = 0;
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
    if (done || value === undefined) return { chunks, isCut: false };
    chunks.push(value);
    bytes += value.length;
    if (bytes > bodyBytesMax) {
      await reader?.cancel();
      return { chunks, isCut: true };
    }
  }
};

/** Signs by the server's clock: if it rejects this machine's, the request is signed again with the time of its answer. */
export function createSender(session: Pick<Session, 'send'>) {
  let offsetMs = 0;
  const once = (request: TriedRequest, signal: AbortSignal): Promise<SentRequest> => {
    const timestampMs = request.isSigned ? Math.round(Date.now() + offsetMs) : undefined;
    return session.send({ ...request, timestampMs, signal });
  };
  return async (request: TriedRequest, signal: AbortSignal): Promise<SentRequest> => {
    const sent = await once(request, signal);
    if (sent.response.status !== 400) return sent;
    const { code, serverTimeMs } = readJson(await sent.response.clone().text());
    if (code !== 'clock_skew' || typeof serverTimeMs !== 'number') return sent;
    offsetMs = serverTimeMs - Date.now();
    return once(request, signal);
  };
}

export type Sender = ReturnType<typeof createSender>;

/** The keys of a JSON object; none for any other text. */
export function readJson(text: string): Readonly<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Readonly<Record<string, unknown>>; // each key is checked where it is read
  } catch {
    return {};
  }
}

export async function exchangeOnce(send: Sender, request: TriedRequest, signal: AbortSignal): Promise<Exchange> {
  const startedMs = performance.now();
  const { headers, response } = await send(request, signal);
  const { chunks, isCut } = await readBody(response);
  const body = new Blob(chunks, { type: response.headers.get('Content-Type') ?? 'text/plain' });
  return {
    sentHeaders: headers,
    status: response.status,
    headers: headersOf(response.headers),
    tookMs: performance.now() - startedMs,
    body,
    text: await body.text(),
    isCut,
  };
}

/** Longest text on the page; formatting and drawing more would block it. */
export const bodyCharactersMax = 50_000;

/** A body for people: JSON indented, the rest as it is, cut if it is long. */
export function formatBody(text: string): { readonly text: string; readonly isCut: boolean } {
  const whole = text.length > 1_000_000 ? text : indent(text);
  return { text: whole.slice(0, bodyCharactersMax), isCut: whole.length > bodyCharactersMax };
}

const indent = (text: string): string => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
};
