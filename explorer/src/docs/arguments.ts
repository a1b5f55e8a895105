// The arguments of an operation: values to begin with, and the target that they make.
import { formOf, type Route, type RouteName, routes } from '@sealpost/protocol';
import type { OpenApiParameter } from '@sealpost/protocol/openapi';
import type { DocsOperation } from './document.ts';
import type { SampleStreams } from './sample-body.ts';

/** The arguments of the query, then the request headers. */
export const headersLast = (parameters: readonly OpenApiParameter[]): readonly OpenApiParameter[] =>
  parameters.toSorted((a, b) => Number(a.in === 'header') - Number(b.in === 'header'));

export type ArgumentValues = Readonly<Record<string, string>>;

/** Values that work on this server now. Optional arguments are empty, but for those that keep an answer short. */
export const firstValues = (
  { parameters }: Pick<DocsOperation, 'parameters'>,
  { feedIds, entries }: SampleStreams,
  nowSeconds: number,
): ArgumentValues => {
  const known: Readonly<Record<string, string>> = {
    feedID: feedIds[0] ?? '',
    feedIDs: feedIds.slice(0, 2).join(','),
    timestamp: String(nowSeconds - 10),
    startTimestamp: String(nowSeconds - 60),
    from: String(nowSeconds - 3_600),
    to: String(nowSeconds),
    resolution: '300',
    limit: '3',
    base_asset: entries[0]?.baseAsset ?? '',
  };
  const names = parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
  // A path with two forms takes one stream or several, never both.
  const isOne = names.includes('feedID');
  return Object.fromEntries(
    names.map((name) => [name, name === 'feedIDs' && isOne ? '' : (known[name] ?? '')] as const),
  );
};

/** The arguments that are sent, in the document's order. */
export const sentArguments = (
  { parameters }: Pick<DocsOperation, 'parameters'>,
  values: ArgumentValues,
): ArgumentValues =>
  Object.fromEntries(
    parameters
      .filter((parameter) => parameter.in === 'query' && (values[parameter.name] ?? '').trim() !== '')
      .map(({ name }) => [name, (values[name] ?? '').trim()] as const),
  );

/** Request headers that are sent besides the signature. */
export const sentHeaders = (
  { parameters }: Pick<DocsOperation, 'parameters'>,
  values: ArgumentValues,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    parameters
      .filter((parameter) => parameter.in === 'header' && (values[parameter.name] ?? '').trim() !== '')
      .map(({ name }) => [name, (values[name] ?? '').trim()] as const),
  );

/** Path and query as a browser sends them, which is what is signed. */
export const targetOf = ({ path }: Pick<DocsOperation, 'path'>, sent: ArgumentValues): string => {
  const pairs = Object.entries(sent).map(
    ([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll("'", '%27')}`,
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
};

/** The row of the route table for these arguments, which may select another form of the path; undefined if this page does not know it. */
export const routeOf = ({ method, path }: DocsOperation, sent: ArgumentValues): RouteName | undefined => {
  const rows = Object.entries<Route>(routes).filter(([, route]) => route.path === path && route.method === method);
  const form = rows.find(([, route]) => Object.hasOwn(sent, formOf(route) ?? ''));
  const [name] = form ?? rows.find(([, route]) => formOf(route) === undefined) ?? [];
  return name as RouteName | undefined; // the table's own key
};
