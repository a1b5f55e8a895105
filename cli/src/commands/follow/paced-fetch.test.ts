import { expect, test } from 'vitest';
import { createPacedFetch } from './paced-fetch.ts';

/** A server that answers at once, on a clock that moves only while someone waits. */
const createPaced = (answer: () => Response = () => new Response('{}')) => {
  let nowMs = 0;
  const sentMs: number[] = [];
  const send = async () => {
    sentMs.push(nowMs);
    return answer();
  };
  const paced = createPacedFetch(
    send as typeof fetch, // it looks at no argument
    () => nowMs,
    async (ms) => {
      nowMs += ms;
    },
  );
  return { sentMs, get: (path = '/page') => paced(`http://there${path}`), passMs: (ms: number) => (nowMs += ms) };
};

const withHeaders = (headers: Record<string, string>, status = 200) => new Response('{}', { status, headers });

test('paced fetch: a server without rate-limit headers gets 9 requests a second on each path', async () => {
  const { sentMs, get } = createPaced();
  for (let i = 0; i < 10; i += 1) await get();
  expect(Math.round(sentMs.at(-1) ?? 0)).toBe(1_000);
  await get('/latest');
  expect(sentMs.at(-1)).toBe(sentMs.at(-2));
});

test('paced fetch: the remaining requests are spread over the window', async () => {
  const { sentMs, get } = createPaced(() => withHeaders({ 'RateLimit-Remaining': '120', 'RateLimit-Reset': '60' }));
  for (let i = 0; i < 3; i += 1) await get();
  expect(sentMs.map(Math.round)).toEqual([0, 111, 611]);
});

test('paced fetch: it waits at 0 remaining and after a 429; a long wait becomes a 429 and nothing is sent', async () => {
  for (const answer of [
    () => withHeaders({ 'RateLimit-Remaining': '0', 'RateLimit-Reset': '2' }),
    () => withHeaders({ 'Retry-After': '2' }, 429),
  ]) {
    const { sentMs, get } = createPaced(answer);
    await get();
    await get();
    expect(sentMs).toEqual([0, 2_000]);
  }
  const { sentMs, get, passMs } = createPaced(() => withHeaders({ 'Retry-After': '60' }, 429));
  await get();
  const early = await get();
  expect([early.status, early.headers.get('Retry-After'), sentMs.length]).toEqual([429, '60', 1]);
  passMs(60_000);
  await get();
  expect(sentMs.length).toBe(2);
});

test('paced fetch: if a server sends a time instead of seconds, it retries after a minute', async () => {
  for (const answer of [
    () => withHeaders({ 'RateLimit-Remaining': '0', 'RateLimit-Reset': '179477512' }),
    () => withHeaders({ 'Retry-After': '179477512' }, 429),
  ]) {
    const { sentMs, get, passMs } = createPaced(answer);
    await get();
    expect((await get()).headers.get('Retry-After')).toBe('60');
    passMs(60_000);
    await get();
    expect(sentMs.length).toBe(2);
  }
});

test('paced fetch: a server that spreads its limit over years is asked again after a minute', async () => {
  const { sentMs, get, passMs } = createPaced(() =>
    withHeaders({ 'RateLimit-Remaining': '1', 'RateLimit-Reset': '179477512' }),
  );
  for (let i = 0; i < 2; i += 1) await get();
  expect((await get()).headers.get('Retry-After')).toBe('60');
  passMs(60_000);
  await get();
  expect(sentMs.length).toBe(3);
});
