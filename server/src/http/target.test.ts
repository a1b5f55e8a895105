import { ApiError, errorOf } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { matchRoute } from './target.ts';

test.each([
  ['/api/v1/feeds', 'GET, HEAD, OPTIONS'],
  ['/time', 'GET, HEAD, OPTIONS'],
  ['/', 'HEAD, OPTIONS'],
])('target: %s tells OPTIONS, and any method that it refuses, that it answers %s', (path, allow) => {
  expect(matchRoute('OPTIONS', { path, query: '' })).toEqual({ allow });
  for (const method of ['POST', 'TRACE', 'get', ...(path === '/' ? ['GET'] : [])])
    expect(() => matchRoute(method, { path, query: '' })).toThrow(
      new ApiError('method_not_allowed', `This path answers ${allow}.`, { allow }),
    );
});

test('target: OPTIONS of an unknown path is 404 like any other method', () => {
  expect(() => matchRoute('OPTIONS', { path: '/nothing', query: '' })).toThrow(errorOf('route_not_found'));
});
