// The routes that the client uses. The compiler checks paths and credentials against the protocol's route table, so that browsers need not
// load the table: 1.4 KB gzipped.
import type { Route, routes } from '@sealpost/protocol';

type Routes = typeof routes;

export const paths = {
  discovery: '/api/v1/discovery',
  feeds: '/api/v1/feeds',
  reportAt: '/api/v1/reports',
  reportLatest: '/api/v1/reports/latest',
  reportBulk: '/api/v1/reports/bulk',
  reportPage: '/api/v1/reports/page',
  reportCoverage: '/api/v1/reports/coverage',
  reportCoverageMany: '/api/v1/reports/coverage/bulk',
  reportCandles: '/api/v1/reports/candles',
  reportCandlesMany: '/api/v1/reports/candles/bulk',
  reportStream: '/api/v1/reports/stream',
  origins: '/',
  socket: '/api/v1/ws',
  socketMs: '/api/v2/ws',
  time: '/time',
  signers: '/signers.json',
  status: '/status.json',
} as const satisfies { readonly [R in keyof Routes]?: Routes[R]['path'] };

type Asked = keyof typeof paths;
type Open = { [R in Asked]: Routes[R]['auth'] extends 'required' ? never : R }[Asked];

/** The routes that work without credentials. */
const open: { readonly [R in Open]: Routes[R]['auth'] } = {
  discovery: 'optional',
  origins: 'optional',
  time: 'none',
  signers: 'none',
  status: 'none',
};

/** The path of a target. */
export const pathOf = (target: string): string => target.replace(/\?.*$/s, '');

/** Whether a path requires credentials, accepts them, or ignores them. */
export function authOf(path: string): Route['auth'] {
  const name = (Object.keys(open) as Open[]).find((one) => paths[one] === path); // its own keys
  return name === undefined ? 'required' : open[name];
}

type Query = Routes['discovery']['query'];

/** The kind of each catalog filter's value. */
export const filterKinds: { readonly [N in keyof Query]: Query[N]['kind'] } = {
  base_asset: 'names',
  quote_asset: 'names',
  asset_class: 'names',
  feed_type: 'names',
  attribute_type: 'names',
  status: 'names',
  network_type: 'names',
  hidden: 'boolean',
  created_after: 'day',
  created_before: 'day',
  expected_decommission_after: 'day',
  expected_decommission_before: 'day',
  decommissioned_after: 'day',
  decommissioned_before: 'day',
};
