// Parses a raw query string into a route's typed query (D8, D14). The signature is verified over the raw string before.
import {
  type Parameter,
  type ParameterKind,
  type ParameterValues,
  type QueryOf,
  type RouteName,
  routes,
} from './api.ts';
import { ApiError, malformedArgument } from './errors.ts';
import { parseFeedId } from './feed-id.ts';
import { type CandleResolution, candleResolutions, limits } from './limits.ts';
import { parseBoolean, parseDay, parseFeedIds, parseInteger, parseNames, parseSeconds } from './parameters.ts';

/** Limits that a deployment may set. */
export type QueryLimits = { readonly feedIdsMax: number };

type ParameterParser<K extends ParameterKind> = (
  raw: string,
  argument: string,
  bounds: QueryLimits,
) => ParameterValues[K];

const parseResolution = (raw: string, argument: string): CandleResolution => {
  const resolution = candleResolutions.find((seconds) => String(seconds) === raw);
  if (resolution !== undefined) return resolution;
  throw malformedArgument(argument, raw, candleResolutions.join(' or '));
};

const parsers: { readonly [K in ParameterKind]: ParameterParser<K> } = {
  feedId: parseFeedId,
  feedIds: (raw, argument, bounds) => parseFeedIds(raw, argument, bounds.feedIdsMax),
  seconds: parseSeconds,
  limit: (raw, argument) => parseInteger(raw, argument, limits.pageLimitMin, limits.pageLimitMax),
  resolution: parseResolution,
  names: parseNames,
  day: parseDay,
  boolean: parseBoolean,
};

/** Splits a raw query string (without `?`): percent-decoded, `+` is a space, all values of a name in order. */
export function splitQuery(raw: string): ReadonlyMap<string, readonly string[]> {
  const values = new Map<string, string[]>();
  for (const pair of raw === '' ? [] : raw.split('&')) {
    const equals = pair.indexOf('=');
    const name = percentDecode(equals === -1 ? pair : pair.slice(0, equals));
    const value = equals === -1 ? '' : percentDecode(pair.slice(equals + 1));
    const known = values.get(name);
    if (known === undefined) values.set(name, [value]);
    else known.push(value);
  }
  return values;
}

/** Parses the query of a route. Throws if an argument is missing, malformed or repeated; ignores unknown ones. */
export function parseQuery<R extends RouteName>(route: R, raw: string, bounds: QueryLimits = limits): QueryOf<R> {
  const given = splitQuery(raw);
  const parsed: Record<string, unknown> = {};
  const rows: Readonly<Record<string, Parameter>> = routes[route].query;
  for (const [name, parameter] of Object.entries(rows)) {
    const { insteadOf } = parameter;
    if (insteadOf !== undefined && given.has(name) && given.has(insteadOf))
      throw new ApiError('malformed_argument', `${insteadOf} and ${name} are both given. Send one of them.`, {
        argument: insteadOf,
        expected: `either ${insteadOf} or ${name}`,
      });
    const value = parseArgument(name, parameter, given.get(name) ?? [], bounds);
    if (value !== undefined) parsed[parameter.as] = value;
  }
  return parsed as QueryOf<R>; // keyed by `as` and valued by `kind` of the same rows as the type
}

const parseArgument = (name: string, parameter: Parameter, values: readonly string[], bounds: QueryLimits): unknown => {
  const [value, ...repeats] = values;
  if (repeats.length > 0) {
    throw new ApiError('repeated_argument', `${name} is given ${values.length} times, expected once.`, {
      argument: name,
    });
  }
  if (value !== undefined) return parsers[parameter.kind](value, name, bounds);
  if (parameter.required) {
    throw new ApiError('missing_argument', `${name} is missing. ${parameter.about}`, { argument: name });
  }
  return parameter.default;
};

const percentDecode = (text: string): string => {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch (cause) {
    throw new ApiError('malformed_target', 'The query has a percent-encoding that is not UTF-8.', {}, { cause });
  }
};
