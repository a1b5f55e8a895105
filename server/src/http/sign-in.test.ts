import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createSignInCode, createSignInCodes } from '../access/sign-in-code.ts';
import type { RequestEvent } from './pipeline.ts';
import { withSignIn } from './sign-in.ts';

const credentials = { userId: '6f0660ca-f5ff-45be-958e-340d5b28c692', secret: 'a-secret' };
const told: RequestEvent[] = [];
const others = (_: IncomingMessage, response: ServerResponse): void => void response.writeHead(404).end();
let nowMs = 1_763_200_000_000;
const handle = withSignIn(
  others,
  { codes: createSignInCodes(credentials.secret, () => nowMs), credentials },
  () => 'request-id',
  (event) => void told.push(event),
  () => elapsedMs,
);
let elapsedMs = 0;
const server = createServer((request, response) => handle(request, response));
let url = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

const post = (headers: Record<string, string>, init: RequestInit = {}) =>
  fetch(`${url}/sign-in`, { method: 'POST', headers, ...init });
const newCode = () => ({ 'X-Sign-In-Code': createSignInCode(credentials.secret, nowMs) });

test('sign-in: a code is exchanged once, without CORS, and the secret is not logged', async () => {
  const code = newCode();
  const [first, second] = [await post(code), await post(code)];
  expect([first.status, await first.json()]).toEqual([200, credentials]);
  expect(first.headers.get('cache-control')).toBe('no-store');
  expect(first.headers.get('access-control-allow-origin')).toBeNull();
  expect([second.status, await second.json()]).toMatchObject([401, { code: 'unauthorized', requestId: 'request-id' }]);
  expect(told.map(({ status, method, route, code: error }) => [status, method, route, error])).toEqual([
    [200, 'POST', null, null],
    [401, 'POST', null, 'unauthorized'],
  ]);
  expect(JSON.stringify(told)).not.toContain(credentials.secret);
});

test('sign-in: no code, an expired one, another site and other requests get nothing', async () => {
  const expired = newCode();
  nowMs += 600_001;
  const answers = await Promise.all([
    post({}),
    post(expired),
    post({ ...newCode(), 'Sec-Fetch-Site': 'cross-site' }),
    post({ ...newCode(), 'Sec-Fetch-Site': 'same-site' }),
    post(newCode(), { method: 'GET' }),
    post(newCode(), { method: 'PUT' }),
    fetch(`${url}/sign-in?x`, { method: 'POST', headers: newCode() }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 404, 404, 404]);
  for (const answer of answers) expect(await answer.text()).not.toContain(credentials.secret);
});

test('sign-in: attempts are rate-limited, also those with a valid code', async () => {
  elapsedMs += 10_000;
  const answers = await Promise.all(Array.from({ length: 40 }, () => post({ 'X-Sign-In-Code': 'guess' })));
  expect(answers.filter(({ status }) => status === 401)).toHaveLength(20);
  expect(answers.filter(({ status }) => status === 429)).toHaveLength(20);
  const limited = await post(newCode());
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '1']);
  elapsedMs += 1_000;
  expect((await post(newCode())).status).toBe(200);
});
