import fc from 'fast-check';
import { expect, test } from 'vitest';
import { findJsonError } from './json-error.ts';

test.each([
  ['{"a": nonsense}', 6],
  ['{"a": 1,}', 8],
  ['[1 2]', 3],
  ['{"a" 1}', 5],
  ['{1: 2}', 1],
  ['[1}', 2],
  ['{}\n{}', 3],
  ['[true, fals]', 7],
  ['{"a": "line\nbreak"}', 6],
])('json: %s is wrong at %i', (text, at) => {
  expect(findJsonError(text)).toBe(at);
});

test('json: valid JSON has no error, and cut anywhere it has one', () => {
  const value = fc.oneof(fc.dictionary(fc.string(), fc.jsonValue()), fc.array(fc.jsonValue()));
  fc.assert(
    fc.property(value, fc.nat(), fc.constantFrom(undefined, 2), (raw, cut, indent) => {
      const text = JSON.stringify(raw, null, indent);
      expect(findJsonError(text)).toBeUndefined();
      // Within an escape or a number's tail the place may be where that begins.
      const end = 1 + (cut % (text.length - 1));
      expect(findJsonError(text.slice(0, end)), text.slice(0, end)).toBeTypeOf('number');
    }),
    { numRuns: 300 },
  );
});
