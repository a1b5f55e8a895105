// GET /api/v1/ws and /api/v2/ws without an upgrade: told to ask for one, unless they ask for an origin that there is not (D31).
import { ApiError, errorOf } from '@sealpost/protocol';
import type { Handler } from './context.ts';

const echoedCharactersMax = 80;

/** Where no origins are configured, the header says nothing. */
export const checkOrigin = (origin: string | undefined, origins: readonly string[]): void => {
  if (origin === undefined || origins.length === 0 || origins.includes(origin)) return;
  const shown = JSON.stringify(origin.slice(0, echoedCharactersMax));
  const expected = `expected one of ${origins.join(', ')}`;
  throw new ApiError('unknown_origin', `X-Cll-Origin is ${shown}, ${expected}.`, { header: 'X-Cll-Origin' });
};

export const live: Handler<'socket' | 'socketMs'> = (_, { origin, origins }) => {
  checkOrigin(origin, origins);
  throw errorOf('upgrade_required');
};
