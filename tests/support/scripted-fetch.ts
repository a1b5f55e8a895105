// A fetch that answers as told, attempt by attempt, and remembers what it was asked. Real Response objects, no socket.

export type Asked = {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
};

/** An answer: a status with a body and headers, a thrown error, or silence until the request is aborted. */
export type Scripted =
  | {
      readonly status: number;
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | Error
  | 'silence';

/** Gives the answers in order; an attempt beyond them fails the test by its text. */
export const scriptedFetch = (answers: readonly Scripted[] | ((asked: Asked) => Scripted)) => {
  const asked: Asked[] = [];
  const fetch = async (input: unknown, init: RequestInit = {}): Promise<Response> => {
    const one = { url: String(input), headers: (init.headers ?? {}) as Record<string, string> }; // the client sends plain objects
    asked.push(one);
    const answer = typeof answers === 'function' ? answers(one) : answers[asked.length - 1];
    if (answer === undefined) throw new Error(`Attempt ${asked.length} was not expected.`);
    if (answer instanceof Error) throw answer;
    if (answer === 'silence') return silence(init.signal ?? undefined);
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
    return new Response(text, { status: answer.status, headers: answer.headers ?? {} });
  };
  return { fetch, asked };
};

const silence = (signal: AbortSignal | undefined): Promise<Response> =>
  new Promise((_, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
  });

/** The body of an error as the server writes it. */
export const errorBody = (code: string, details: Readonly<Record<string, unknown>> = {}) => ({
  error: `About ${code}.`,
  message: `About ${code}.`,
  code,
  requestId: 'r-1',
  ...details,
});
