import { type Route, routes } from '@sealpost/protocol';
import { expect, test } from 'vitest';
import { authOf, filterKinds, paths } from './paths.ts';

test('paths: those of the table, with the credentials that it asks for', () => {
  for (const [name, path] of Object.entries(paths)) {
    const route: Route = routes[name as keyof typeof paths]; // its own keys
    expect([path, authOf(path)]).toEqual([route.path, route.auth]);
  }
  expect(authOf('/api/v1/anything')).toBe('required');
});

test('paths: the filters of the catalog are those of the table', () => {
  const kinds = Object.entries(routes.discovery.query).map(([name, { kind }]) => [name, kind]);
  expect(Object.entries(filterKinds)).toEqual(kinds);
});
