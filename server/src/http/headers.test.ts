import { expect, test } from 'vitest';
import { readHeaders } from './headers.ts';

const read = (...lines: readonly (readonly [string, string])[]) => readHeaders(lines.flat());

test('headers: several lines of a list are one list', () => {
  const headers = read(
    ['If-None-Match', '"a"'],
    ['x-forwarded-for', '192.0.2.1'],
    ['if-none-match', 'W/"b", "c"'],
    ['X-Forwarded-For', '192.0.2.2'],
  );
  expect(headers).toMatchObject({ ifNoneMatch: '"a", W/"b", "c"', forwardedFor: '192.0.2.1, 192.0.2.2' });
});

test.each([
  [['gzip', 'br'], true],
  [['br', 'gzip'], true],
  [['br', 'gzip;q=0'], false],
  [['deflate', 'br'], false],
] as const)('headers: of the encodings in the lines %j, is gzip accepted? %s', (lines, accepted) => {
  const given = lines.map((value): readonly [string, string] => ['Accept-Encoding', value]);
  expect(read(...given).acceptsGzip).toBe(accepted);
});

test('headers: authentication that comes twice is named', () => {
  const twice = read(['Authorization', 'a'], ['authorization', 'a']);
  expect(twice.repeatedAuth).toBe('authorization');
});

test('headers: a position or an origin that comes twice is neither of the two', () => {
  const twice = read(['Last-Event-ID', '1'], ['last-event-id', '2'], ['X-Cll-Origin', '001'], ['x-cll-origin', '002']);
  expect(twice).toMatchObject({ lastEventId: '1, 2', origin: '001, 002' });
});
