// Request signing: what is accepted, and what must not be.
import { authHeaders } from '@sealpost/protocol';
import type { Check } from '../check.ts';
import type { CheckContext } from '../check-context.ts';
import { type AskChanges, strangers } from '../requester.ts';
import { targets } from '../sample.ts';
import { demand, demandStatus, describeAnswer, SkipError } from '../verdict.ts';

/** A request that succeeds when it is signed correctly. */
export async function goodTarget({ sample }: CheckContext): Promise<string> {
  const [{ feedId }] = await sample.reporting();
  return targets.latest(feedId);
}

const composition =
  'HMAC signature made with SHA-256 and a shared secret key, computed over parts of the request and its metadata.';
const mismatch = 'A request whose signature does not match the one the server expects fails with 401.';
const incorrect = 'Required headers that are missing or carry incorrect values give 400.';

/** A correct request, changed like this, has one of these statuses. */
const expectStatus =
  (changes: AskChanges, ...statuses: readonly number[]): Check['run'] =>
  async (context) =>
    demandStatus(await context.ask(await goodTarget(context), changes), statuses);

const withHeader = (name: string, value: string | undefined): AskChanges => ({ headers: { [name]: value } });

const missingHeaders: readonly Check[] = Object.entries(authHeaders).map(([part, name]) => ({
  id: `signing.missing-${part.toLowerCase()}`,
  title: `A request without ${name} is 400`,
  source: 'specification',
  sentence: incorrect,
  run: expectStatus(withHeader(name, undefined), 400),
}));

const signed: Check['run'] = async ({ ask }) => {
  const feeds = await ask(targets.feeds);
  // Not part of the specification; discovery checks a signature if there is one.
  const answer = feeds.status === 404 ? await ask(targets.discovery) : feeds;
  demandStatus(answer, [200]);
};

/** The same arguments in another order: what counts is the order on the request line. */
const queryOrder: Check['run'] = async ({ ask, sample }) => {
  const [{ feedId, newest }] = await sample.reporting();
  const [one, other] = [`feedID=${feedId}`, `timestamp=${newest.observationsTimestamp}`];
  for (const query of [`${one}&${other}`, `${other}&${one}`])
    demandStatus(await ask(`/api/v1/reports?${query}`), [200]);
};

const queryOrderSigned: Check['run'] = async ({ ask, sample }) => {
  const [{ feedId, newest }] = await sample.reporting();
  const [one, other] = [`feedID=${feedId}`, `timestamp=${newest.observationsTimestamp}`];
  const answer = await ask(`/api/v1/reports?${one}&${other}`, {
    signed: { target: `/api/v1/reports?${other}&${one}` },
  });
  demandStatus(answer, [401]);
};

const encodedTarget: Check['run'] = async ({ ask, sample }) => {
  const streams = await sample.reporting();
  if (streams.length < 2) throw new SkipError('Fewer than two sampled streams have a report.');
  const feedIds = streams.slice(0, 2).map(({ feedId }) => feedId);
  for (const comma of [',', '%2C', '%2c']) {
    const answer = await ask(targets.bulk(feedIds, streams[0].newest.observationsTimestamp, comma));
    demandStatus(answer, [200, 206]);
  }
};

const sameForStrangers: Check['run'] = async (context) => {
  const target = await goodTarget(context);
  const wrong = await context.ask(target, { signed: { withOtherSecret: true } });
  const stranger = await context.ask(target, { signed: { asOtherUser: true } });
  demandStatus(stranger, [401]);
  demand(
    wrong.status === stranger.status,
    'one status for both',
    () => `${wrong.status} and ${describeAnswer(stranger)}`,
    stranger,
  );
};

/** Not with the user's ID and its signature, and not with a signature in the other name. */
const otherName: Check['run'] = async (context) => {
  const target = await goodTarget(context);
  demandStatus(await context.ask(target, { signed: { inOtherName: true } }), [401]);
  demandStatus(await context.ask(target, withHeader(authHeaders.userId, strangers.userId)), [401]);
};

export const signingChecks: readonly Check[] = [
  {
    id: 'signing.accepted',
    title: 'A correctly signed request is accepted',
    source: 'specification',
    sentence: composition,
    run: signed,
  },
  {
    id: 'signing.wrong-secret',
    title: 'A request signed with another secret is 401',
    source: 'specification',
    sentence: mismatch,
    run: expectStatus({ signed: { withOtherSecret: true } }, 401),
  },
  {
    id: 'signing.unknown-user',
    title: 'An unknown user is 401, like a wrong secret',
    source: 'specification',
    sentence: 'Authentication fails (typically a signature mismatch)',
    run: sameForStrangers,
  },
  {
    id: 'signing.other-user',
    title: 'The right secret in the name of another user is 401',
    source: 'specification',
    sentence: mismatch,
    run: otherName,
  },
  {
    id: 'signing.other-method',
    title: 'A signature for another method is 401',
    source: 'specification',
    sentence: mismatch,
    run: expectStatus({ signed: { method: 'POST' } }, 401),
  },
  {
    id: 'signing.case',
    title: 'A signature over the target in another case is 401',
    source: 'SDKs',
    sentence: 'The signed string has the request target as sent: path, ? and query.',
    run: async (context) => {
      const target = await goodTarget(context);
      demandStatus(await context.ask(target, { signed: { target: target.replace('reports', 'Reports') } }), [401]);
    },
  },
  {
    id: 'signing.other-path',
    title: 'A signature for another path is 401',
    source: 'specification',
    sentence: mismatch,
    run: expectStatus({ signed: { target: '/api/v1/feeds' } }, 401),
  },
  {
    id: 'signing.query',
    title: 'A signature without the query is 401',
    source: 'SDKs',
    sentence: 'The signed string has the request target as sent: path, ? and query.',
    run: expectStatus({ signed: { target: '/api/v1/reports/latest' } }, 401),
  },
  {
    id: 'signing.query-order',
    title: 'Arguments are accepted in any order, signed as sent',
    source: 'SDKs',
    sentence: 'SDKs send arguments in different orders, and sign the target as sent.',
    run: queryOrder,
  },
  {
    id: 'signing.query-order-signed',
    title: 'A signature over the arguments in another order is 401',
    source: 'specification',
    sentence: mismatch,
    run: queryOrderSigned,
  },
  {
    id: 'signing.encoding',
    title: 'A comma is accepted as is, as %2C and as %2c, signed as sent',
    source: 'SDKs',
    sentence: 'Some SDKs send feedIDs=A%2CB, others feedIDs=A,B.',
    run: encodedTarget,
  },
  {
    id: 'signing.body-hash',
    title: 'A signature over a body that was not sent is 401',
    source: 'SDKs',
    sentence: 'The signed string has the SHA-256 of the body, which is empty.',
    run: expectStatus({ signed: { body: 'x' } }, 401),
  },
  {
    id: 'signing.zero',
    title: 'A signature of zeros is 401',
    source: 'specification',
    sentence: mismatch,
    run: expectStatus(withHeader(authHeaders.signature, '0'.repeat(64)), 401),
  },
  ...missingHeaders,
  {
    id: 'signing.malformed-userid',
    title: 'A user ID that is not a UUID is 400',
    source: 'specification',
    sentence: incorrect,
    run: expectStatus(withHeader(authHeaders.userId, 'nobody'), 400),
  },
  {
    id: 'signing.malformed-timestamp',
    title: 'A timestamp that is not a number is 400',
    source: 'specification',
    sentence: incorrect,
    run: expectStatus(withHeader(authHeaders.timestamp, 'yesterday'), 400),
  },
  {
    id: 'signing.malformed-signature',
    title: 'A signature that is not hex is 400 or 401',
    source: 'specification',
    sentence: incorrect,
    run: expectStatus(withHeader(authHeaders.signature, 'not hex'), 400, 401),
  },
  {
    id: 'signing.header-case',
    title: 'Header names are accepted in lower case',
    source: 'SDKs',
    sentence: 'Some SDKs send header names in lower case.',
    run: expectStatus({ lowerCaseNames: true }, 200),
  },
  {
    id: 'signing.content-type',
    title: 'A GET with a Content-Type is accepted',
    source: 'SDKs',
    sentence: 'One SDK sends Content-Type: application/json on every GET.',
    run: expectStatus(withHeader('Content-Type', 'application/json'), 200),
  },
  {
    id: 'signing.no-user-agent',
    title: 'A request without User-Agent is accepted',
    source: 'SDKs',
    sentence: 'One SDK sends no User-Agent.',
    run: expectStatus(withHeader('User-Agent', undefined), 200),
  },
];
