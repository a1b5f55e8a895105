import { type Route, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { authOf, filterKinds, paths } from './paths.ts';

test('paths: equal to the route table, with the same credentials', () => {
  for (const [name, path] of Object.entries(paths)) {
    const route: Route = routes[name as keyof typeof paths]; // its own keys
    expect([path, authOf(path)]).toEqual([route.path, route.auth]);
  }
  expect(authOf('/api/v1/anything')).toBe('required');
});

test('paths: the catalog filters are those of the route table', () => {
  const kinds = Object.entries(routes.discovery.query).map(([name, { kind }]) => [name, kind]);
  expect(Object.entries(filterKinds)).toEqual(kinds);
});
