// Errors: what they look like, that they stay what they are, and what is never answered.
import type { Check } from '../check.ts';
import type { ReceivedAnswer } from '../exchange.ts';
import type { AskChanges } from '../requester.ts';
import { targets } from '../sample.ts';
import { demand, demandStatus, excerpt } from '../verdict.ts';

const requireErrorText = (answer: ReceivedAnswer): void => {
  const { error, message } = Object(answer.json);
  const isText = [error, message].some((text) => typeof text === 'string' && text !== '');
  demand(
    isText,
    'a JSON object with a text in error or message',
    () => excerpt(answer.text) || 'an empty body',
    answer,
  );
};

const shape: Check['run'] = async ({ ask }) => {
  const malformed = await ask(targets.latest('0x12'));
  demandStatus(malformed, [400]);
  requireErrorText(malformed);
  const wrong = await ask(targets.latest(`0x0003${'00'.repeat(30)}`), { signed: { withOtherSecret: true } });
  demandStatus(wrong, [401]);
  requireErrorText(wrong);
};

const repeatable: Check['run'] = async ({ ask }) => {
  for (const [changes, status] of [
    [{}, 400],
    [{ signed: { withOtherSecret: true } }, 401],
  ] as const) {
    const target = status === 400 ? targets.latest('0x12') : targets.latest(`0x0003${'00'.repeat(30)}`);
    const first = await ask(target, changes);
    const again = await ask(target, changes);
    demandStatus(first, [status]);
    demand(again.status === first.status, `${first.status} again`, () => String(again.status), again);
  }
};

const isClientError =
  (target: string, expected: string, changes: AskChanges = {}): Check['run'] =>
  async ({ ask }) => {
    const answer = await ask(target, changes);
    demand(
      answer.status >= 400 && answer.status < 500,
      expected,
      () => `${answer.status} ${excerpt(answer.text)}`,
      answer,
    );
  };

/** Without credentials, so that it cannot change anything on a server that has such an operation. */
const readOnly: Check['run'] = async (context) => {
  const [{ feedId }] = await context.sample.reporting();
  for (const method of ['POST', 'DELETE'])
    await isClientError(targets.latest(feedId), '405 (or another 4xx)', { method, signed: false })(context);
};

export const errorChecks: readonly Check[] = [
  {
    id: 'errors.shape',
    title: 'The body of an error is JSON with a text in error or message',
    source: 'SDKs',
    sentence: 'SDKs show the text that an error has in error or message.',
    run: shape,
  },
  {
    id: 'errors.repeatable',
    title: 'The same wrong request fails in the same way again',
    source: 'specification',
    sentence: '400 and 401 do not succeed on retry unless the request is changed.',
    run: repeatable,
  },
  {
    id: 'errors.unknown-path',
    title: 'An unknown path is a client error',
    source: 'specification',
    sentence: 'The version is part of the path: all routes are under /api/v1/.',
    run: isClientError('/api/v1/no-such-route', '404 (or another 4xx)'),
  },
  {
    id: 'errors.read-only',
    title: 'POST and DELETE are client errors',
    source: 'specification',
    sentence: 'Every operation is an HTTP GET.',
    run: readOnly,
  },
  {
    id: 'errors.long-url',
    title: 'A URL of 12 KB is a client error',
    source: 'specification',
    sentence: 'A query argument is missing or malformed',
    run: isClientError(targets.latest(`0x${'0'.repeat(12_000)}`), '400, 414 or 431'),
  },
];
