// Parses the request target: what is rejected first, and which route it names. Paths are compared as received, so that no other spelling
// reaches a route (D3, D27).
import {
  ApiError,
  errorOf,
  formOf,
  type Route,
  type RouteName,
  routeLabel,
  routes,
  splitQuery,
  withoutTrailing,
} from '@sealpost/protocol';
import { memoise } from '../runtime/kept-values.ts';
import { type FindFile, redirectTo, type ServedFile } from './explorer.ts';

export type Target = { readonly path: string; readonly query: string };

/** Parses a raw target. Rejects the absolute form, fragments, and percent-encoding that is not UTF-8. */
export const parseTarget = memoise((raw): Target => {
  if (!raw.startsWith('/'))
    throw new ApiError('malformed_target', 'The target must begin with a slash: send path and query only.');
  if (raw.includes('#'))
    throw new ApiError('malformed_target', 'The target has a fragment. Remove # and what follows.');
  const text = isAscii(raw) ? raw : decodeUtf8(raw);
  if (text.includes('%')) checkEncoding(text);
  const mark = text.indexOf('?');
  const path = mark === -1 ? text : text.slice(0, mark);
  return { path: path.startsWith('//') ? path.slice(1) : path, query: mark === -1 ? '' : text.slice(mark + 1) };
});

// biome-ignore lint/suspicious/noControlCharactersInRegex: every ASCII character, control characters too
const isAscii = (text: string): boolean => /^[\x00-\x7f]*$/.test(text);

// node hands the target over byte by byte as latin1.
const decodeUtf8 = (raw: string): string => {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(raw, 'latin1'));
  } catch {
    throw new ApiError('malformed_target', 'The target has bytes that are not UTF-8.');
  }
};

const checkEncoding = (text: string): void => {
  try {
    decodeURIComponent(text);
  } catch {
    throw new ApiError('malformed_target', 'The target has a percent-encoding that is not UTF-8.');
  }
};

type Known = {
  readonly name: RouteName;
  readonly route: Route;
  /** Is a query of this form of the path? Absent: every query is. */
  readonly hasForm?: (query: string) => boolean;
};

// The look at the text leaves the other form as it was: no query is taken apart that may not have the argument, in any spelling.
const formTest = (argument: string) => {
  const isGiven = memoise((query) => splitQuery(query).has(argument));
  return (query: string): boolean => (query.includes(argument) || query.includes('%')) && isGiven(query);
};

const byPath = new Map<string, Known[]>();
for (const [name, route] of Object.entries<Route>(routes)) {
  const form = formOf(route);
  const known: Known = { name: name as RouteName, route, ...(form !== undefined && { hasForm: formTest(form) }) }; // the table's own keys
  const others = byPath.get(route.path) ?? [];
  byPath.set(route.path, form === undefined ? [...others, known] : [known, ...others]);
}

/** What a path answers, for browsers that ask with OPTIONS. */
type Allowed = { readonly allow: string };

/** A file that is served besides the routes. */
type Found = { readonly file: ServedFile };

/** What is answered without a route, and without authentication. */
export type OtherTarget = Allowed | Found;

/**
 * The route of a target and method, or else the file of the path. OPTIONS has none: it is answered for the path alone. Files are looked
 * for last, so that they cost the routes nothing and can take none of them over.
 */
export function matchRoute(
  method: string,
  { path, query }: Target,
  findFile?: FindFile,
  request: Asking = nobody,
): Known | OtherTarget {
  const known = byPath.get(path) ?? [];
  const match = known.find(
    ({ route, hasForm }) =>
      (route.method === method || (route.method === 'GET' && method === 'HEAD')) && hasForm?.(query) !== false,
  );
  if (match !== undefined) return match;
  const file = findFile?.(path);
  const isRead = method === 'GET' || method === 'HEAD';
  if (file !== undefined && isRead) return { file };
  const methods = known.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]));
  if (file !== undefined) methods.unshift('GET', 'HEAD');
  if (methods.length === 0) {
    const page = isRead && isBrowser(request) ? findPage(path, query, findFile) : undefined;
    if (page === undefined) throw errorOf('route_not_found');
    return { file: page };
  }
  const allow = [...new Set(methods), 'OPTIONS'].join(', ');
  if (method === 'OPTIONS') return { allow };
  throw new ApiError('method_not_allowed', `This path answers ${allow}.`, { allow });
}

/** Who asks. Their headers are parsed only for addresses that nothing answers. */
type Asking = { readonly headers: { readonly accept?: string | undefined } };
const nobody: Asking = { headers: {} };

/** Does a person look at the answer? Programs ask for JSON, or for anything. */
const isBrowser = ({ headers }: Asking): boolean => headers.accept?.includes('text/html') === true;

/**
 * What a person gets at an address that nothing answers: the same one without a slash at its end where that is answered, or else the page. Paths of
 * the API stay errors in JSON.
 */
const findPage = (path: string, query: string, findFile: FindFile | undefined): ServedFile | undefined => {
  if (findFile === undefined || path.startsWith('/api/')) return undefined;
  const trimmed = withoutTrailing(path, '/');
  const target = trimmed === '/streams' || trimmed === '' ? '/' : trimmed;
  const isKnown = byPath.has(target) || findFile(target) !== undefined;
  if (target !== path && isKnown) return redirectTo(query === '' ? target : `${target}?${query}`);
  return findFile(path, true);
};

/** What a request may have asked for: a route, or any file of the explorer. */
export type ServedName = RouteName | 'explorer';

/** What logs and metrics call it: the path of a route, with the argument that makes it another form, and one word for all files. */
export const servedLabels: Readonly<Record<ServedName, string>> = {
  ...(Object.fromEntries(Object.entries<Route>(routes).map(([name, route]) => [name, routeLabel(route)])) as Record<
    RouteName,
    string
  >), // the table's own keys
  explorer: 'explorer',
};
