// The arguments of an operation: values to begin with, and the target that they make.
import { formOf, type Route, type RouteName, routes, timeResolutionOf } from '@sealpost/protocol';
import type { OpenApiParameter } from '@sealpost/protocol/openapi';
import type { DocsOperation } from './document.ts';
import type { SampleStreams } from './sample-body.ts';

/** The arguments of the query, then the request headers. */
export const headersLast = (parameters: readonly OpenApiParameter[]): readonly OpenApiParameter[] =>
  parameters.toSorted((a, b) => Number(a.in === 'header') - Number(b.in === 'header'));

export type ArgumentValues = Readonly<Record<string, string>>;

export const isMillisecondFeed = (feedId: string): boolean => timeResolutionOf(feedId) === 'milliseconds';

/** The streams to begin with: for the WebSocket in milliseconds those that need it, if there are any. */
const feedIdsFor = (path: string, feedIds: readonly string[]): readonly string[] => {
  const fitting = path === routes.socketMs.path ? feedIds.filter(isMillisecondFeed) : [];
  return fitting.length > 0 ? fitting : feedIds;
};

/** Values that work on this server now. Optional arguments are empty, but for those that keep an answer short. */
export function firstValues(
  { path, parameters }: Pick<DocsOperation, 'path' | 'parameters'>,
  { feedIds: all, entries }: SampleStreams,
  nowSeconds: number,
): ArgumentValues {
  const feedIds = feedIdsFor(path, all);
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
}

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

const isSendable = (value: string): boolean => {
  try {
    return new Headers([['X', value]]).has('X');
  } catch {
    return false;
  }
};

/** Why the browser would refuse to send this header; undefined if it would not. */
export function headerProblem(name: string, value: string): string | undefined {
  if (isSendable(value.trim())) return undefined;
  const character = [...value].find((one) => !isSendable(one)) ?? '';
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
  return `${name} cannot be sent: a header cannot contain ${character} (U+${code}). Use ASCII characters, such as straight quotes.`;
}

/** Path and query as a browser sends them, which is what is signed. */
export function targetOf({ path }: Pick<DocsOperation, 'path'>, sent: ArgumentValues): string {
  const pairs = Object.entries(sent).map(
    ([name, value]) => `${name}=${encodeURIComponent(value).replaceAll('%2C', ',').replaceAll("'", '%27')}`,
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
}

/** The row of the route table for these arguments, which may select another form of the path; undefined if this page does not know it. */
export function routeOf({ method, path }: DocsOperation, sent: ArgumentValues): RouteName | undefined {
  const rows = Object.entries<Route>(routes).filter(([, route]) => route.path === path && route.method === method);
  const form = rows.find(([, route]) => Object.hasOwn(sent, formOf(route) ?? ''));
  const [name] = form ?? rows.find(([, route]) => formOf(route) === undefined) ?? [];
  return name as RouteName | undefined; // the table's own key
}
