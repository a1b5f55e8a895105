import { expect, test } from 'vitest';
import { createSignInCode, createSignInCodes, signInCodeMs } from './sign-in-code.ts';

const start = 1_763_200_000_000;

test('sign-in code: it works once, within ten minutes, for its own secret, and not after a restart', () => {
  let nowMs = start;
  const codes = createSignInCodes('secret', () => nowMs);
  const [code, late, early] = [start, start, start - 1].map((madeMs) => createSignInCode('secret', madeMs));
  expect([codes.take(String(code)), codes.take(String(code))]).toEqual([true, false]);
  expect(codes.take(String(early))).toBe(false);
  expect(codes.take(createSignInCode('other', start))).toBe(false);
  expect(codes.take(createSignInCode('secret', start + 1))).toBe(false);
  nowMs += signInCodeMs;
  expect(codes.take(createSignInCode('secret', nowMs))).toBe(true);
  nowMs += 1;
  expect([codes.take(String(late)), codes.take(String(code))]).toEqual([false, false]);
  expect(createSignInCodes('secret', () => nowMs).take(createSignInCode('secret', nowMs - 1))).toBe(false);
});

test('sign-in code: anything else is rejected, and no two codes are equal', () => {
  const codes = createSignInCodes('secret', () => start);
  const code = createSignInCode('secret', start);
  const changed = [...code].map(
    (character, i) => `${code.slice(0, i)}${character === 'A' ? 'B' : 'A'}${code.slice(i + 1)}`,
  );
  for (const text of ['', '.', '..', `${code} `, ` ${code}`, code.slice(0, -1), `${code}A`, `${code}.A`, ...changed])
    expect(codes.take(text), text).toBe(false);
  expect(codes.take(code)).toBe(true);
  expect(code).not.toContain('secret');
  expect(createSignInCode('secret', start)).not.toBe(createSignInCode('secret', start));
});
