import { expect, test } from 'vitest';
import { createTextPieces } from './report-bodies.ts';

test('bodies: a long text is put together piece by piece, each in a slice; a short one needs no slice', async () => {
  let slices = 0;
  const make = async (texts: readonly string[]) => {
    slices = 0;
    const { add, end } = createTextPieces((read) => {
      slices += 1;
      return read(() => false);
    });
    for (const text of texts) await add(text);
    return end('}');
  };
  expect(await make(['{', '1'])).toEqual(Buffer.from('{1}'));
  expect(slices).toBe(0);
  const long = Array.from({ length: 100 }, (_, i) => String(i % 10).repeat(10_000));
  const body = await make(long);
  expect(slices).toBe(4);
  expect((body as readonly Buffer[]).map(({ length }) => length)).toEqual([250_000, 250_000, 250_000, 250_000, 1]);
  expect(Buffer.concat(body as readonly Buffer[]).toString()).toBe(`${long.join('')}}`);
});
