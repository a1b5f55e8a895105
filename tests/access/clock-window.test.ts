// The signed timestamp: exactly 13 digits, at most 5,000 ms from the server's clock, on every kind of route; nothing else gets further than 400.
import { createHmac } from 'node:crypto';
import { authHeaders, emptyBodySha256, stringToSign } from '@sealpost/protocol';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tally } from '../support/full-count.ts';
import { exchange, head, type RawAnswer } from '../support/raw-http.ts';
import { type Credentials, openService, type Service } from '../support/running-api.ts';
import { testStream } from '../support/running-ingest.ts';
import { createSignedReports, secondStream } from '../support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const nowMs = 1_763_200_000_000;
const second = nowMs / 1_000 - 1;
const feedId = secondStream(1);
const targets = [
  `/api/v1/reports/latest?feedID=${feedId}`,
  `/api/v1/reports?feedID=${feedId}&timestamp=${second}`,
  `/api/v1/reports/bulk?feedIDs=${feedId}&timestamp=${second}`,
  `/api/v1/reports/page?feedID=${feedId}&startTimestamp=${second}`,
  '/api/v1/feeds',
  '/api/v1/discovery',
];
let service: Service;
let reader: Credentials;
let stranger: Credentials;

beforeAll(async () => {
  service = await openService([testStream(feedId)], signerSets, () => nowMs);
  await service.append([report(feedId, second, second)]);
  reader = await service.addAccount(['public']);
  stranger = { userId: crypto.randomUUID(), secret: 'nobody’s' };
});
afterAll(() => service.close());

/** Signed over the timestamp as it is sent, whatever that is; so only the timestamp can be wrong. */
const ask = async (target: string, { userId, secret }: Credentials, timestamp: string): Promise<RawAnswer> => {
  const text = stringToSign('GET', target, emptyBodySha256, userId, timestamp);
  const signature = createHmac('sha256', secret).update(text, 'latin1').digest('hex');
  const lines = [
    `${authHeaders.userId}: ${userId}`,
    `${authHeaders.timestamp}: ${timestamp}`,
    `${authHeaders.signature}: ${signature}`,
  ];
  const bytes = head(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines);
  const { answers } = await exchange(Number(new URL(service.url).port), bytes, { answersMax: 1 });
  return answers[0] as RawAnswer; // it answers everything
};

const counts = { 'requests in the window, accepted': 0, 'others, rejected': 0, deviations: 0 };
const judge = async (who: Credentials, timestamp: string, isGood: boolean, code: string): Promise<void> => {
  for (const target of targets) {
    const { status, body } = await ask(target, who, timestamp);
    const isRight = isGood ? status === 200 : status === 400 && JSON.parse(body).code === code;
    counts[isGood ? 'requests in the window, accepted' : 'others, rejected'] += 1;
    if (!isRight) counts.deviations += 1;
    expect([target, timestamp, status, isRight && 'as promised'], body).toEqual([
      target,
      timestamp,
      isGood ? 200 : 400,
      'as promised',
    ]);
  }
};
afterAll(() => tally(counts));

test.each([0, 4_999, -4_999, 5_000, -5_000])('clock window: a difference of %i ms is accepted', async (difference) => {
  await judge(reader, String(nowMs + difference), true, '');
});

test.each([5_001, -5_001, 60_000, -60_000, -nowMs + 1_000_000_000_000, 9_999_999_999_999 - nowMs])(
  'clock window: a difference of %i ms is rejected before the user is looked up',
  async (difference) => {
    for (const who of [reader, stranger]) await judge(who, String(nowMs + difference), false, 'clock_skew');
  },
);

const text = String(nowMs);
test.each([
  ['seconds', text.slice(0, 10)],
  ['microseconds', `${text}000`],
  ['a fraction', `${text}.0`],
  ['a fraction of 13 characters', '17632000000.5'],
  ['an exponent', '1.7632e12'],
  ['an exponent of 13 characters', '1763200000e03'],
  ['hexadecimal', `0x${nowMs.toString(16)}`],
  ['a plus sign', `+${text}`],
  ['a minus sign', `-${text}`],
  ['a sign in 13 characters', `+${text.slice(1)}`],
  ['a space inside', `${text.slice(0, 6)} ${text.slice(6)}`],
  ['a separator', '1_763_200_000_000'],
  ['a leading zero', `0${text}`],
  ['2^53', '9007199254740992'],
  ['40 digits', text.padStart(40, '1')],
  ['Arabic digits', Buffer.from('١٧٦٣٢٠٠٠٠٠٠٠٠').toString('latin1')],
  ['full-width digits', Buffer.from('１７６３２００００００００').toString('latin1')],
  ['13 bytes of superscripts', '\xb9'.repeat(13)],
  ['nothing', ''],
  ['NaN', 'NaN'],
  ['Infinity', 'Infinity'],
  ['two values', `${text}, ${text}`],
  ['a date', new Date(nowMs).toISOString()],
])('clock window: %s is 400 malformed_header, for a known user as for an unknown one', async (_, timestamp) => {
  for (const who of [reader, stranger]) await judge(who, timestamp, false, 'malformed_header');
});

test('clock window: spaces and tabs around the value are not part of it', async () => {
  const [target = ''] = targets;
  const text13 = stringToSign('GET', target, emptyBodySha256, reader.userId, text);
  const signature = createHmac('sha256', reader.secret).update(text13).digest('hex');
  const lines = [
    `${authHeaders.userId}: ${reader.userId}`,
    `${authHeaders.timestamp}: \t ${text} \t`,
    `${authHeaders.signature}: ${signature}`,
  ];
  const bytes = head(`GET ${target} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines);
  const { answers } = await exchange(Number(new URL(service.url).port), bytes, { answersMax: 1 });
  expect(answers.map(({ status }) => status)).toEqual([200]);
});
