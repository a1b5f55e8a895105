import { expect, test } from 'vitest';
import { formOf, type Route, routeLabel, routes } from './api.ts';
import { bodies } from './bodies.ts';
import { limits } from './limits.ts';

const rows = Object.entries<Route>(routes);

test('routes: the specification’s five operations at their paths', () => {
  expect(rows.map(([, { path }]) => path)).toEqual(
    expect.arrayContaining([
      '/api/v1/discovery',
      '/api/v1/reports',
      '/api/v1/reports/latest',
      '/api/v1/reports/bulk',
      '/api/v1/reports/page',
    ]),
  );
});

test('routes: everything under /api/ needs authentication, discovery alone may be called without', () => {
  for (const [name, { path, auth }] of rows.filter(([, row]) => row.path.startsWith('/api/'))) {
    expect(auth, path).toBe(name === 'discovery' ? 'optional' : 'required');
  }
});

test('routes: no two share method and path, except forms, which an argument selects', () => {
  expect(new Set(rows.map(([, route]) => `${route.method} ${routeLabel(route)}`)).size).toBe(rows.length);
  const forms = rows.filter(([, route]) => formOf(route) !== undefined);
  expect(forms.map(([name, route]) => [name, routeLabel(route)])).toEqual([
    ['reportLatestMany', '/api/v1/reports/latest?feedIDs'],
  ]);
  for (const [, { method, path, auth, query }] of forms) {
    const [plain, ...others] = rows.filter(([, one]) => one.path === path && formOf(one) === undefined);
    expect([plain?.[1].method, plain?.[1].auth, others]).toEqual([method, auth, []]);
    for (const { insteadOf } of Object.values(query))
      if (insteadOf) expect(plain?.[1].query[insteadOf]?.required).toBe(true);
  }
});

test('routes: required arguments are those of the specification', () => {
  const required = (query: Route['query']) => Object.keys(query).filter((name) => query[name]?.required);
  expect(required(routes.reportAt.query)).toEqual(['feedID', 'timestamp']);
  expect(required(routes.reportLatest.query)).toEqual(['feedID']);
  expect(required(routes.reportBulk.query)).toEqual(['feedIDs', 'timestamp']);
  expect(required(routes.reportPage.query)).toEqual(['feedID', 'startTimestamp']);
  expect(required(routes.discovery.query)).toEqual([]);
});

test('routes: the default page limit lies within its bounds', () => {
  expect(limits.pageLimitDefault).toBe(10);
  expect([limits.pageLimitMin, limits.pageLimitMax]).toEqual([1, 1_000]);
});

test('bodies: every reference names a body, every required key is a property', () => {
  const references = JSON.stringify(bodies).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g);
  for (const [, name] of references) expect(Object.keys(bodies)).toContain(name);
  for (const { properties, required } of Object.values(bodies)) {
    for (const key of required) expect(Object.keys(properties)).toContain(key);
  }
});
