import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ApiError } from './errors.ts';
import { parseFeedId } from './feed-id.ts';
import { parseBoolean, parseDay, parseFeedIds, parseInteger, parseList, parseSeconds } from './parameters.ts';

// Mixes arbitrary text with near misses of each format, so that the accepting side is reached too.
const rawText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 80 }),
  fc.stringMatching(/^[ +-]?[0-9]{0,20}([.e][0-9]{1,3})?[ n]?$/),
  fc.stringMatching(/^[0-9]{3,5}-[0-9]{1,2}-[0-9]{1,2}[TZ ]?$/),
  fc.stringMatching(/^0[xX][0-9a-fA-F]{63,65}(,0x[0-9a-f]{64}){0,2},?$/),
  fc.constantFrom('true', 'false', 'TRUE', ' true', 'truе', '1', ''),
);

const resultOf = <T>(parse: () => T): T | undefined => {
  try {
    return parse();
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).details.argument).toBe('argument'); // the line above expects it
    return undefined;
  }
};

const property = (name: string, check: (raw: string) => void) =>
  test(name, () => fc.assert(fc.property(rawText, check), { numRuns: 1_000 }));

property('timestamp: accepts exactly the decimal spellings of 0 … 2^32 − 1 in at most ten digits', (raw) => {
  const expected = /^\d{1,10}$/.test(raw) && BigInt(raw) < 2n ** 32n ? Number(BigInt(raw)) : undefined;
  expect(resultOf(() => parseSeconds(raw, 'argument'))).toBe(expected);
});

property('limit: accepts exactly the decimal spellings of 1 … 1000', (raw) => {
  const expected = /^\d{1,4}$/.test(raw) && BigInt(raw) >= 1n && BigInt(raw) <= 1000n ? Number(BigInt(raw)) : undefined;
  expect(resultOf(() => parseInteger(raw, 'argument', 1, 1_000))).toBe(expected);
});

property('date: accepts exactly days that print back as they came', (raw) => {
  const ms = resultOf(() => parseDay(raw, 'argument'));
  if (ms !== undefined) expect(new Date(ms).toISOString()).toBe(`${raw}T00:00:00.000Z`);
});

test('date: accepts every day of four centuries', () => {
  for (let ms = Date.UTC(1900, 0, 1); ms < Date.UTC(2300, 0, 1); ms += 86_400_000) {
    expect(parseDay(new Date(ms).toISOString().slice(0, 10), 'argument')).toBe(ms);
  }
});

property('boolean: accepts two words', (raw) => {
  expect(resultOf(() => parseBoolean(raw, 'argument'))).toBe(
    raw === 'true' ? true : raw === 'false' ? false : undefined,
  );
});

property('list: accepts what joins back and has no empty item', (raw) => {
  const items = resultOf(() => parseList(raw, 'argument'));
  if (items === undefined) expect(`,${raw},`).toContain(',,');
  else expect([items.join(','), items.includes('')]).toEqual([raw, false]);
});

property('feed ID: accepts exactly 0x and 64 hex digits', (raw) => {
  const expected =
    raw.length === 66 && raw.startsWith('0x') && /^[\da-f]*$/i.test(raw.slice(2)) ? raw.toLowerCase() : undefined;
  expect(resultOf(() => parseFeedId(raw, 'argument'))).toBe(expected);
});

property('feed IDs: every accepted id is a feed ID, none twice, at most the bound', (raw) => {
  const feedIds = resultOf(() => parseFeedIds(raw, 'argument', 2)) ?? [];
  expect(new Set(feedIds).size).toBe(feedIds.length);
  expect(feedIds.length).toBeLessThanOrEqual(2);
  for (const feedId of feedIds) expect(feedId).toMatch(/^0x[0-9a-f]{64}$/);
});
