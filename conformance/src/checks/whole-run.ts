// The deployment as a whole, judged by every request of the run. These rows send requests only if the run has sent none.
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import type { NoAnswerReason, ReceivedAnswer } from '../exchange.ts';
import { targets } from '../sample.ts';
import { demand, describeAnswer, excerpt, SkipError } from '../verdict.ts';

/** A few requests, unless other checks have made them. */
const warmUp = async ({ ask, requester, sample }: CheckContext): Promise<void> => {
  if (requester.attempts.length > 5 || requester.outage() !== undefined) return;
  try {
    await ask(targets.discovery, { signed: false });
    await sample.streams();
  } catch {
    // What failed is in the log, which the check judges.
  }
};

const answersOf = async (context: CheckContext): Promise<readonly ReceivedAnswer[]> => {
  await warmUp(context);
  const answers = context.requester.attempts.flatMap(({ answer }) => answer ?? []);
  if (answers.length === 0) throw new SkipError('No request was answered.');
  return answers;
};

const noFailure =
  (expected: string, ...reasons: readonly NoAnswerReason[]): Check['run'] =>
  async (context) => {
    await warmUp(context);
    const { attempts } = context.requester;
    const failed = attempts.filter(({ failure }) => failure !== undefined && reasons.includes(failure.reason));
    const actual = () => `${failed.length} of ${attempts.length} requests: ${failed[0]?.failure?.message}`;
    demand(failed.length === 0, expected, actual, failed[0]);
  };

const noStatus =
  (expected: string, isBad: (answer: ReceivedAnswer) => boolean): Check['run'] =>
  async (context) => {
    const answers = await answersOf(context);
    const bad = answers.filter(isBad);
    const actual = () =>
      `${bad.length} of ${answers.length} answers: ${bad[0] === undefined ? '' : describeAnswer(bad[0])}`;
    demand(bad.length === 0, expected, actual, bad[0]);
  };

const rateLimited: Check['run'] = async (context) => {
  const rate = Math.round(context.pace.rate() * 10) / 10;
  await noStatus(`no 429 at ${rate} requests per second`, ({ status }) => status === 429)(context);
};

const knownStatuses: readonly number[] = [
  200, 204, 206, 304, 400, 401, 404, 405, 408, 413, 414, 426, 429, 431, 500, 502, 503, 504,
];

const isJson: Check['run'] = async (context) => {
  const answers = (await answersOf(context)).filter(
    ({ status, request }) =>
      (status === 200 || status === 206) && request.target.startsWith('/api/') && request.method === 'GET',
  );
  const bad = answers.find(
    ({ json, headers }) => json === undefined || !/^application\/json\b/i.test(headers['content-type'] ?? ''),
  );
  demand(
    bad === undefined,
    'JSON with Content-Type: application/json',
    () => `${bad?.headers['content-type'] ?? 'no Content-Type'}: ${excerpt(bad?.text ?? '')}`,
    bad,
  );
};

const inTime =
  (expected: string, tookMs: (answer: ReceivedAnswer) => number): Check['run'] =>
  async (context) => {
    const { slowAfterMs } = context.rules;
    const answers = (await answersOf(context)).toSorted((a, b) => tookMs(b) - tookMs(a));
    const [slowest] = answers;
    const slow = answers.filter((answer) => tookMs(answer) > slowAfterMs).length;
    const actual = () =>
      `${slow} of ${answers.length} answers take longer, up to ${Math.round(slowest === undefined ? 0 : tookMs(slowest))} ms`;
    demand(slow === 0, `${expected} within ${slowAfterMs} ms`, actual, slowest);
  };

const transient =
  '5xx responses and network-level errors (time-outs, connection resets) are generally transient and are retried with exponential backoff.';

export const serviceChecks: readonly Check[] = [
  {
    id: 'service.answers',
    title: 'Every request is answered: no resets, no time-outs',
    source: 'specification',
    sentence: transient,
    run: noFailure('an answer to every request', 'no connection', 'timed out', 'not HTTP'),
  },
  {
    id: 'service.whole-answers',
    title: 'Every answer is whole and of reasonable size',
    source: 'specification',
    sentence: transient,
    run: noFailure('whole answers', 'broken off', 'too large'),
  },
  {
    id: 'service.server-errors',
    title: 'No request fails with 5xx',
    source: 'specification',
    sentence:
      '500 Internal Server: Unexpected server-side condition. 502, 503: Transient error; the request should be retried.',
    run: noStatus('no 5xx', ({ status }) => status >= 500),
  },
  {
    id: 'service.rate-limit',
    title: 'No request within the rate limit is 429',
    source: 'specification',
    sentence: "429 Too Many Requests: The request exceeds the account's rate limit.",
    run: rateLimited,
  },
  {
    id: 'service.redirects',
    title: 'No answer is a redirect',
    source: 'SDKs',
    sentence: 'The signature covers the target as sent, so that a redirected request does not verify.',
    run: noStatus('no redirect', ({ status }) => status >= 300 && status < 400 && status !== 304),
  },
  {
    id: 'service.statuses',
    title: 'Only statuses of the specification and of HTTP itself',
    source: 'specification',
    sentence: '206 Partial (bulk endpoint only)',
    run: noStatus(
      'a documented status',
      ({ status, request }) =>
        !knownStatuses.includes(status) ||
        (status === 206 && !/^\/api\/v1\/reports\/(bulk|latest)\?/.test(request.target)),
    ),
  },
  {
    id: 'service.json',
    title: 'Successful answers are JSON',
    source: 'SDKs',
    sentence: 'SDKs parse every successful answer as JSON.',
    run: isJson,
  },
  {
    id: 'service.latency',
    title: 'Answers begin in time',
    source: 'SDKs',
    sentence: 'SDKs time out, and a signature is valid for 5 seconds only.',
    run: inTime('answers begin', ({ firstByteMs }) => firstByteMs),
  },
  {
    id: 'service.transfer',
    title: 'Answers arrive in time once they have begun',
    source: 'SDKs',
    sentence: 'SDKs time out while an answer arrives.',
    run: inTime('answers are complete', ({ transferMs }) => transferMs),
  },
];
