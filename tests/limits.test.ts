// Limits over real sockets with a clock that the test moves: what is offered, what gets through, and that nobody pays for another.
import { connect } from 'node:net';
import { signRequest } from '@sealpost/protocol';
import { afterEach, expect, test } from 'vitest';
import type { ApiRules } from '../server/src/http/api.ts';
import { countOf, tally } from './support/full-count.ts';
import { exchange, head, openKeepAlive, toLines } from './support/raw-http.ts';
import { type Credentials, openService, type Service } from './support/running-api.ts';
import { testStream } from './support/running-ingest.ts';
import { createSignedReports, secondStream } from './support/signed-reports.ts';

const { report, signerSets } = await createSignedReports();
const now = 1_763_200_000;
const feedId = secondStream(1);
const latest = `/api/v1/reports/latest?feedID=${feedId}`;
const rules = { requestsPerSecond: 10, anonymousRequestsPerSecond: 10, failuresPerSecond: 10 } as const;

let service: Service;
let clockMs = 0;

const open = async (changes: Partial<ApiRules> = {}): Promise<Credentials> => {
  clockMs = 1_000_000;
  service = await openService(
    [testStream(feedId)],
    signerSets,
    () => now * 1_000,
    { ...rules, ...changes },
    () => clockMs,
  );
  await service.append([report(feedId, now - 1, now - 1)]);
  return service.addAccount(['public']);
};
afterEach(() => service.close());

const requestOf = ({ userId, secret }: Credentials, target = latest, ...lines: readonly string[]): string => {
  const auth = signRequest({ method: 'GET', target, userId, timestampMs: now * 1_000 }, secret);
  return head(`GET ${target} HTTP/1.1`, 'Host: a', ...toLines(auth), ...lines);
};
const portOf = ({ url }: Service): number => Number(new URL(url).port);
const openConnection = () => openKeepAlive(connect(portOf(service), '127.0.0.1'));

const seconds = countOf(20, 60);

test('limits: 20 requests a second against a limit of 10 give 10, and other routes and accounts lose nothing', async () => {
  const alice = await open();
  const bob = await service.addAccount(['public']);
  const connection = openConnection();
  const perSecond = Array.from({ length: seconds }, () => 0);
  const [request, elsewhere, others] = [requestOf(alice), requestOf(alice, '/api/v1/feeds'), requestOf(bob)];
  for (let i = 0; i < 20 * seconds; i++) {
    const { status, headers, body } = await connection.ask(request);
    if (status === 200) perSecond[Math.floor(i / 20)] = (perSecond[Math.floor(i / 20)] ?? 0) + 1;
    else {
      expect([status, JSON.parse(body).code, headers['retry-after']]).toEqual([429, 'rate_limited', '1']);
      expect([headers['ratelimit-limit'], headers['ratelimit-remaining']]).toEqual(['10', '0']);
    }
    if (i % 20 === 19) {
      expect((await connection.ask(elsewhere)).status).toBe(200);
      expect((await connection.ask(others)).status).toBe(200);
    }
    clockMs += 50;
  }
  connection.close();
  // The bucket is full at first: its ten tokens are spent on top of the 19.5 that come in up to the second second’s last request.
  const [first = 0, second = 0, ...rest] = perSecond;
  tally({ 'accepted of 1,200 in a minute at 10 a second': perSecond.reduce((sum, one) => sum + one) });
  expect(first + second).toBe(29);
  expect(rest).toEqual(rest.map(() => 10));
});

const forge = ({ userId }: Credentials, ...lines: readonly string[]): string =>
  requestOf({ userId, secret: 'not the secret' }, latest, ...lines);

/** Sends forged requests in rows of 50, which one connection may pipeline, and after each row one of the victim's own; returns what both got. */
const attack = async (rows: number, forgedOf: (i: number) => string, own: string) => {
  const counts: Record<string, number> = {};
  const victim: number[] = [];
  const connection = openConnection();
  for (let row = 0; row < rows; row++) {
    const bytes = Array.from({ length: 50 }, (_, i) => forgedOf(row * 50 + i)).join('');
    for (const { status, body } of (await exchange(portOf(service), bytes, { answersMax: 50 })).answers) {
      const kind = `${status} ${JSON.parse(body).code}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
    }
    victim.push((await connection.ask(own)).status);
    clockMs += 100; // as fast as the victim's own limit allows
  }
  connection.close();
  return { counts, victim };
};

const forgeries = countOf(500, 10_000);
const rows = forgeries / 50;
const tallyVictim = (victim: readonly number[]): void =>
  tally({
    'requests of the victim': victim.length,
    'of these rejected': victim.filter((status) => status !== 200).length,
  });

test(`limits: a victim named in ${forgeries} forged requests from its own address loses none of its own`, async () => {
  const alice = await open();
  const forged = forge(alice);
  const { counts, victim } = await attack(rows, () => forged, requestOf(alice));
  tallyVictim(victim);
  expect(victim).toEqual(Array.from({ length: rows }, () => 200));
  // Ten at once, then one in each of the 100 ms between two rows.
  expect(counts).toEqual({ '401 unauthorized': rows + 9, '429 too_many_failures': forgeries - rows - 9 });
});

test(`limits: a victim named in ${forgeries} forged requests from as many addresses behind a proxy loses none of its own`, async () => {
  const alice = await open({ trustedProxies: new Set(['127.0.0.1']) });
  const forged = forge(alice, 'X-Forwarded-For: 203.0.113.9, ADDRESS');
  const forgedOf = (i: number) => forged.replace('ADDRESS', `10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
  const { counts, victim } = await attack(rows, forgedOf, requestOf(alice));
  tallyVictim(victim);
  expect(victim).toEqual(Array.from({ length: rows }, () => 200));
  expect(counts).toEqual({ '401 unauthorized': forgeries });
});

test('limits: X-Forwarded-For of a stranger is not believed, and of a proxy only its own entry is', async () => {
  const askAll = async (linesOf: (i: number) => string) => {
    const bytes = Array.from({ length: 30 }, (_, i) => head('GET /api/v1/discovery HTTP/1.1', 'Host: a', linesOf(i)));
    const { answers } = await exchange(portOf(service), bytes.join(''), { answersMax: 30 });
    return answers.filter(({ status }) => status === 200).length;
  };
  await open();
  expect(await askAll((i) => `X-Forwarded-For: 10.0.0.${i}`)).toBe(10);
  await service.close();
  await open({ trustedProxies: new Set(['127.0.0.1']) });
  expect(await askAll((i) => `X-Forwarded-For: 10.0.0.${i}, 192.0.2.1`)).toBe(10);
  expect(await askAll((i) => `X-Forwarded-For: 10.0.0.${i}`)).toBe(30);
});

test('limits: anonymous discovery is limited by address, an IPv6 network counts as one, and signed callers do not count', async () => {
  const alice = await open({ trustedProxies: new Set(['127.0.0.1']) });
  const connection = openConnection();
  const askFrom = async (address: string) =>
    (await connection.ask(head('GET /api/v1/discovery HTTP/1.1', 'Host: a', `X-Forwarded-For: ${address}`))).status;
  const askOften = async (addressOf: (i: number) => string) => {
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push(await askFrom(addressOf(i)));
    return statuses;
  };
  const tenOfTwelve = [...Array.from({ length: 10 }, () => 200), 429, 429];
  expect(await askOften(() => '192.0.2.1')).toEqual(tenOfTwelve);
  expect(await askOften(() => '192.0.2.2')).toEqual(tenOfTwelve);
  expect(await askOften((i) => `2001:db8:0:1::${i}`)).toEqual(tenOfTwelve);
  expect(await askOften((i) => `2001:db8:0:${i + 2}::1`)).toEqual(Array.from({ length: 12 }, () => 200));
  const signed = requestOf(alice, '/api/v1/discovery', 'X-Forwarded-For: 192.0.2.1');
  expect((await connection.ask(signed)).status).toBe(200);
  clockMs += 100;
  expect([await askFrom('192.0.2.1'), await askFrom('192.0.2.1')]).toEqual([200, 429]);
  connection.close();
});

test('limits: what needs no authentication, and what there is not, is limited by address; signed callers do not count', async () => {
  const alice = await open({ trustedProxies: new Set(['127.0.0.1']), publicRequestsPerSecond: 10 });
  const connection = openConnection();
  const askFrom = async (address: string, path = '/time') =>
    (await connection.ask(head(`GET ${path} HTTP/1.1`, 'Host: a', `X-Forwarded-For: ${address}`))).status;
  const askAll = async (address: (i: number) => string, ...paths: readonly string[]) => {
    const statuses: number[] = [];
    for (let i = 0; i < 12; i++) statuses.push(await askFrom(address(i), paths[i % paths.length]));
    return statuses;
  };
  const ten = (status: number) => [...Array.from({ length: 10 }, () => status), 429, 429];
  expect(await askAll(() => '192.0.2.1', '/time')).toEqual(ten(200));
  expect(await askAll(() => '192.0.2.2', '/nothing', '/api/v9')).toEqual(ten(404));
  expect(await askAll(() => '192.0.2.3', '/%zz')).toEqual(ten(400));
  expect(await askAll((i) => `2001:db8:0:1::${i}`, '/status.json', '/openapi.json', '/signers.json', '/docs')).toEqual(
    ten(200),
  );
  expect((await connection.ask(requestOf(alice, latest, 'X-Forwarded-For: 192.0.2.1'))).status).toBe(200);
  expect(await askFrom('192.0.2.4')).toBe(200);
  clockMs += 100;
  expect([await askFrom('192.0.2.1'), await askFrom('192.0.2.1')]).toEqual([200, 429]);
  connection.close();
});

test('limits: a span that takes longer to read costs more tokens, and the headers say so', async () => {
  const alice = await open();
  const connection = openConnection();
  const coverage = (seconds: number) =>
    requestOf(alice, `/api/v1/reports/coverage?feedID=${feedId}&from=${now - seconds}&to=${now - 1}`);
  const told = async (seconds: number) => {
    const { status, headers } = await connection.ask(coverage(seconds));
    return [status, ...['limit', 'remaining'].map((name) => headers[`ratelimit-${name}`]), headers['retry-after']];
  };
  expect(await told(60)).toEqual([200, '10', '9', undefined]);
  expect(await told(86_400)).toEqual([200, '10', '5', undefined]);
  expect(await told(86_400)).toEqual([200, '10', '1', undefined]);
  expect(await told(86_400)).toEqual([429, '10', '1', '1']);
  expect(await told(60)).toEqual([200, '10', '0', undefined]);
  clockMs += 400;
  expect(await told(86_400)).toEqual([200, '10', '0', undefined]);
  connection.close();
});
