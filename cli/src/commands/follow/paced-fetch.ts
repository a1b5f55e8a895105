// A fetch that keeps to a server's rate limits: requests to one path are spaced out instead of running into 429. The server's own headers set
// the pace where it sends them (D103).

/** Requests per second and path at a server that says nothing: what the published service allows, less a tenth for jitter. */
const defaultPerSecond = 9;
const perSecondMax = 100;
/** A longer wait is the caller's: it is answered with 429 here, and nothing is sent. */
const waitMaxMs = 3_000;
/** A server that names more counts in other units: it is asked again. */
const pauseMaxMs = 60_000;

type Pace = { nextMs: number; perSecond: number };

/** Wraps a fetch. `nowMs` is a clock that never goes back. */
export function createPacedFetch(
  send: typeof fetch,
  nowMs: () => number,
  sleep: (ms: number) => Promise<void>,
): typeof fetch {
  const paces = new Map<string, Pace>();
  const paceOf = (path: string): Pace => {
    const pace = paces.get(path) ?? { nextMs: nowMs(), perSecond: defaultPerSecond };
    paces.set(path, pace);
    return pace;
  };
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const pace = paceOf(url.pathname);
    const waitMs = Math.max(0, pace.nextMs - nowMs());
    if (waitMs > waitMaxMs) return tooEarly(waitMs);
    pace.nextMs = Math.max(pace.nextMs, nowMs()) + Math.min(pauseMaxMs, 1_000 / pace.perSecond);
    if (waitMs > 0) await sleep(waitMs);
    const response = await send(input, init);
    learn(pace, response, nowMs());
    return response;
  };
}

const tooEarly = (waitMs: number): Response =>
  new Response('{"error":"Waiting for the rate limit of the server.","code":"rate_limited"}', {
    status: 429,
    headers: { 'Retry-After': String(Math.ceil(waitMs / 1_000)) },
  });

const numberOf = (headers: Headers, name: string): number | undefined => {
  const raw = headers.get(name)?.trim() ?? '';
  return /^[0-9]{1,9}$/.test(raw) ? Number(raw) : undefined;
};

/** What is left of a window is spread over the rest of it; nothing left, or a 429, is waited for. */
const learn = (pace: Pace, { status, headers }: Response, nowMs: number): void => {
  const [remaining, reset] = [numberOf(headers, 'RateLimit-Remaining'), numberOf(headers, 'RateLimit-Reset')];
  if (status === 429) {
    hold(pace, numberOf(headers, 'Retry-After') ?? reset ?? 1, nowMs);
  } else if (remaining === 0 && reset !== undefined) hold(pace, reset, nowMs);
  else if (remaining !== undefined && reset !== undefined)
    pace.perSecond = Math.min(perSecondMax, remaining / Math.max(1, reset));
};

const hold = (pace: Pace, seconds: number, nowMs: number): void => {
  pace.nextMs = Math.max(pace.nextMs, nowMs + Math.min(pauseMaxMs, 1_000 * seconds));
};
