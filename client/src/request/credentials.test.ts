import { inspect } from 'node:util';
import { expect, test, vi } from 'vitest';
import { errorBody, type Scripted, scriptedFetch } from '../../../tests/support/scripted-fetch.ts';
import { createClient } from '../client.ts';
import { SealpostError } from '../errors.ts';
import { createSigner } from './credentials.ts';

const userId = '7f3c1f0a-3b1e-4d27-9a55-0b8f3c1d2e4f';
const feedId = `0x0003${'0'.repeat(59)}1`;
const report = { feedID: feedId, validFromTimestamp: 7, observationsTimestamp: 7, fullReport: '0x00' };
const good: Scripted = { status: 200, body: { report } };
const refused: Scripted = { status: 401, body: errorBody('unauthorized') };
const errorOf = (call: Promise<unknown>): Promise<SealpostError> =>
  call.then(
    () => expect.unreachable(),
    (error: unknown) => (error instanceof SealpostError ? error : expect.unreachable(String(error))),
  );
const signature = 'X-Authorization-Signature-SHA256';

const open = (answers: readonly Scripted[], options: object) => {
  const { fetch, asked } = scriptedFetch(answers);
  const client = createClient({ baseUrl: 'http://a.test', userId, fetch, retries: 0, nowMs: () => 5, ...options });
  return { client, asked, signatures: () => new Set(asked.map(({ headers }) => headers[signature])).size };
};

test('secret function: returns a string or a promise, and is called once for a burst of requests', async () => {
  for (const secret of [vi.fn(() => 'one'), vi.fn(async () => 'one')]) {
    const { client, signatures } = open([good, good, good], { secret });
    await Promise.all([client.latest(feedId), client.latest(feedId)]);
    await client.latest(feedId);
    expect([secret.mock.calls.length, signatures()]).toEqual([1, 1]);
  }
});

test('secret function: called again after five seconds', async () => {
  let nowMs = 0;
  const secret = vi.fn(() => 'one');
  const signer = createSigner({ userId, secret }, () => nowMs);
  const key = await signer?.key();
  nowMs = 4_999;
  expect(await signer?.key()).toBe(key);
  nowMs = 5_000;
  expect(await signer?.key()).toBe(key); // the same secret is the same key
  expect(secret).toHaveBeenCalledTimes(2);
});

test('secret function: called again after a 401, and the call continues with the new secret', async () => {
  let secret = 'old';
  const { client, asked, signatures } = open([good, refused, good], { secret: () => secret });
  await client.latest(feedId);
  secret = 'new';
  expect((await client.latest(feedId)).report).toEqual(report);
  expect([asked.length, signatures()]).toEqual([3, 2]);
});

test('secret function: if it returns the rejected secret, or another that is rejected, the error is the 401', async () => {
  const same = open([refused], { secret: () => 'old' });
  expect((await errorOf(same.client.latest(feedId))).code).toBe('unauthorized');
  expect(same.asked).toHaveLength(1);
  let n = 0;
  const other = open([refused, refused], { secret: () => `secret ${n++}` });
  expect((await errorOf(other.client.latest(feedId))).code).toBe('unauthorized');
  expect(other.asked).toHaveLength(2);
});

test('secret function: not called again for a stream that the account may not read', async () => {
  const secret = vi.fn(() => 'one');
  const { client } = open([{ status: 401, body: errorBody('stream_not_accessible') }], { secret });
  expect((await errorOf(client.latest(feedId))).code).toBe('stream_not_accessible');
  expect(secret).toHaveBeenCalledTimes(1);
});

test('secret function: concurrent calls that get a 401 share one call of it, and all continue', async () => {
  let secret = 'old';
  const asked = vi.fn(() => secret);
  const { client } = open([good, refused, refused, refused, good, good, good], { secret: asked });
  await client.latest(feedId);
  secret = 'new';
  await Promise.all([client.latest(feedId), client.latest(feedId), client.latest(feedId)]);
  expect(asked).toHaveBeenCalledTimes(2);
});

test.each([
  ['throws', () => Promise.reject(new Error('the vault is sealed'))],
  [
    'throws at once',
    () => {
      throw new Error('the vault is sealed');
    },
  ],
  ['gives nothing', () => undefined],
  ['gives an empty text', () => ''],
  ['gives a number', async () => 7],
])('secret function: one that %s is secret_unavailable, and nothing is sent', async (_, secret) => {
  const { client, asked } = open([], { secret });
  const error = await errorOf(client.latest(feedId));
  expect(error).toMatchObject({ code: 'secret_unavailable', retryable: true, status: undefined });
  if (error.cause !== undefined) expect((error.cause as Error).message).toBe('the vault is sealed'); // the function throws one
  expect(error.message).not.toContain('vault');
  expect(asked).toHaveLength(0);
});

test('secret function: one that takes too long ends with the call', async () => {
  const { client } = open([], { secret: () => new Promise<string>(() => {}) });
  expect((await errorOf(client.latest(feedId, { timeoutMs: 20 }))).code).toBe('timeout');
  expect((await errorOf(client.latest(feedId, { signal: AbortSignal.abort() }))).code).toBe('aborted');
});

test('credentials: one function returns both, and they rotate together', async () => {
  let credentials = { userId, secret: 'old' };
  const { client, asked } = open([refused, good], { userId: undefined, credentials: () => credentials });
  const rotated = { userId: '00000000-0000-4000-8000-000000000001', secret: 'new' };
  const call = client.latest(feedId);
  credentials = rotated;
  await call;
  expect(asked.at(-1)?.headers.Authorization).toBe(rotated.userId);
  const wrong = open([], { userId: undefined, credentials: () => ({ userId: 'no uuid', secret: 'x' }) });
  expect((await errorOf(wrong.client.latest(feedId))).code).toBe('secret_unavailable');
});

test('credentials: invalid options throw at once, without repeating what may be a secret', () => {
  const credentials = () => ({ userId, secret: 's' });
  for (const options of [
    { userId, credentials },
    { secret: 'canary', credentials },
    { credentials: 'canary' },
    { secret: () => 'canary' },
    { userId },
    { userId: 'canary', secret: 'canary' },
  ]) {
    const make = () => createClient({ baseUrl: 'http://a.test', ...(options as object) }); // each row is an object
    expect(make).toThrow(expect.objectContaining({ code: 'invalid_option' }));
    expect(make).not.toThrow('canary');
  }
});

test('credentials: no secret shows in the client, in events, warnings, results or errors', async () => {
  const seen: unknown[] = [];
  const canary = 'canary-secret';
  const { client } = open([good, refused, { status: 503, body: errorBody('store_unavailable') }], {
    secret: () => canary,
    onEvent: (event: unknown) => seen.push(event),
    onWarning: (warning: unknown) => seen.push(warning),
  });
  seen.push(
    client,
    await client.latest(feedId),
    await errorOf(client.latest(feedId)),
    await errorOf(client.latest(feedId)),
  );
  const text = inspect(seen, { depth: 20, showHidden: true }) + JSON.stringify(seen);
  expect(text).not.toContain(canary);
  expect(text).not.toContain(signature);
});
