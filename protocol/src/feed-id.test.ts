import { expect, test } from 'vitest';
import { parseFeedId, schemaVersionOf, timeResolutionOf } from './feed-id.ts';

const id = (prefix: string) => parseFeedId(`0x${prefix}${'ab'.repeat(30)}`);

test('feed ID: parsed in any case, returned in lower case', () => {
  expect(parseFeedId(`0x0003${'AB'.repeat(30)}`)).toBe(`0x0003${'ab'.repeat(30)}`);
});

test('feed ID: anything but 0x and 64 hex digits is rejected with the argument’s name', () => {
  const good = `0x0003${'ab'.repeat(30)}`;
  for (const bad of [
    good.slice(2),
    good.slice(0, -1),
    `${good}0`,
    ` ${good}`,
    `${good}\n`,
    good.replace('a', 'g'),
    good.replace('0x', '0X'),
    '',
    '0x',
    undefined,
    3,
    [good],
  ]) {
    expect(() => parseFeedId(bad)).toThrow(/^feedID is .*, expected 0x and 64 hex digits\.$/s);
  }
});

test('feed ID: the schema version is the low 12 bits of the first two bytes', () => {
  expect(schemaVersionOf(id('0003'))).toBe(3);
  expect(schemaVersionOf(id('000d'))).toBe(13);
  expect(schemaVersionOf(id('1003'))).toBe(3);
  expect(schemaVersionOf(id('0fff'))).toBe(0xfff);
});

test('feed ID: the top nibble is the time resolution', () => {
  expect(timeResolutionOf(id('0003'))).toBe('seconds');
  expect(timeResolutionOf(id('1003'))).toBe('milliseconds');
  expect(timeResolutionOf(id('2003'))).toBeUndefined();
  expect(timeResolutionOf(id('f003'))).toBeUndefined();
});
