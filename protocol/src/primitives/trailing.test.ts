import { expect, test } from 'vitest';
import { withoutTrailing } from './trailing.ts';

test.each([
  ['/a//', '/', '/a'],
  ['//', '/', ''],
  ['', '/', ''],
  ['/a', '/', '/a'],
  ['\t a \t', ' \t', '\t a'],
])('trailing: %j without %j at its end is %j', (text, characters, expected) => {
  expect(withoutTrailing(text, characters)).toBe(expected);
});
