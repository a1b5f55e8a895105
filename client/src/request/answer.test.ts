import { expect, test } from 'vitest';
import { readText, toError } from './answer.ts';

const limited = (headers: Record<string, string>, body: object = { error: 'Too fast.', code: 'rate_limit_exceeded' }) =>
  toError({ status: 429, headers: new Headers(headers), text: JSON.stringify(body) }, 'there', 0).details;

test('answer: Retry-After is seconds or a date, else it is read from the body', () => {
  expect(limited({ 'Retry-After': '7' })).toEqual({ retryAfterSeconds: 7 });
  expect(limited({ 'Retry-After': 'Thu, 01 Jan 1970 00:00:09 GMT' })).toEqual({ retryAfterSeconds: 9 });
  expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds: 3 })).toEqual({ retryAfterSeconds: 3 });
  expect(limited({})).toEqual({});
});

test('answer: a Retry-After that is a date counts from the Date of the response, whatever this machine’s clock says', () => {
  const headers = { 'Retry-After': 'Wed, 18 Nov 2026 20:00:09 GMT', Date: 'Wed, 18 Nov 2026 20:00:00 GMT' };
  expect(limited(headers)).toEqual({ retryAfterSeconds: 9 });
});

test('answer: a server’s message becomes one line without control characters, so that it cannot imitate another message', () => {
  const said = 'No.\r\nerror: the key is\u2028public\x1b[2J\u202egnorw\x9b2J';
  for (const body of [{ error: said, code: 'x' }, { message: said }, { error: { message: said } }, { title: said }]) {
    const { message } = toError({ status: 400, headers: new Headers(), text: JSON.stringify(body) }, 'there', 0);
    expect(message).toBe('No. error: the key is public [2J gnorw 2J');
  }
});

test.each(['x\nerror: y', '', 'x'.repeat(65), 'a code', '\x1b[2J'])(
  'answer: %j is not a code, so the code is inferred from the status',
  (code) => {
    const text = JSON.stringify({ error: 'No.', code, requestId: 'r' });
    const error = toError({ status: 401, headers: new Headers(), text }, 'there', 0);
    expect(error).toMatchObject({ code: 'unauthorized', isInferred: true, message: 'No.', requestId: 'r' });
  },
);

test('answer: a request ID in a body is used only if it is valid in a header', () => {
  const idOf = (requestId: unknown) =>
    toError({ status: 400, headers: new Headers(), text: JSON.stringify({ error: 'x', code: 'y', requestId }) }, 'h', 0)
      .requestId;
  expect([idOf('r-1'), idOf('r\nerror: y'), idOf('x'.repeat(201)), idOf(7)]).toEqual([
    'r-1',
    undefined,
    undefined,
    undefined,
  ]);
});

test('answer: Retry-After is at most an hour, and ignored if it is not a number', () => {
  expect(limited({ 'Retry-After': '1794775127' })).toEqual({ retryAfterSeconds: 3_600 });
  expect(limited({ 'Retry-After': 'Fri, 01 Jan 2100 00:00:00 GMT' })).toEqual({ retryAfterSeconds: 3_600 });
  expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds: 1e300 })).toEqual({
    retryAfterSeconds: 3_600,
  });
  for (const retryAfterSeconds of ['x', -1, null, {}])
    expect(limited({}, { error: 'Too fast.', code: 'x', retryAfterSeconds })).toEqual({});
});

/** A response of so many chunks of 16 KB, and how much of its body was read. */
const longResponse = (status: number, chunks: number) => {
  const read = { chunks: 0, isCanceled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        if (read.chunks === chunks) return controller.close();
        read.chunks += 1;
        controller.enqueue(new Uint8Array(16_384).fill(0x61));
      },
      cancel: () => {
        read.isCanceled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { response: new Response(body, { status }), read };
};

test.each([302, 401, 404, 429, 503])(
  'answer: of a %i body, 64 KB are kept, and the rest is canceled',
  async (status) => {
    const { response, read } = longResponse(status, 1_000);
    expect(await readText(response, () => {})).toEqual({ text: 'a'.repeat(65_536), bytes: 81_920 });
    expect(read).toEqual({ chunks: 5, isCanceled: true });
  },
);

test('answer: an error body of exactly 64 KB is whole', async () => {
  const { response, read } = longResponse(503, 4);
  expect(await readText(response, () => {})).toEqual({ text: 'a'.repeat(65_536), bytes: 65_536 });
  expect(read.isCanceled).toBe(false);
});

test.each([200, 206])(
  'answer: a %i body may have 64 MB; a longer one is an error, and the rest is canceled',
  async (status) => {
    const whole = longResponse(status, 4_096);
    expect(await readText(whole.response, () => {})).toMatchObject({ bytes: 67_108_864 });
    const { response, read } = longResponse(status, 8_000);
    await expect(readText(response, () => {})).rejects.toMatchObject({ code: 'unexpected_answer', status });
    expect(read).toEqual({ chunks: 4_097, isCanceled: true });
  },
);

test('answer: a character that is cut between chunks is decoded, and each chunk is reported', async () => {
  const bytes = new TextEncoder().encode('é€😀');
  const body = new ReadableStream({
    start: (controller) => {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const texts: string[] = [];
  const { text } = await readText(new Response(body), (piece) => texts.push(piece));
  expect([text, texts.join('')]).toEqual(['é€😀', 'é€😀']);
});
