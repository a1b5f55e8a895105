// GET /time: the clock that signed timestamps are compared with.
import type { Handler } from './context.ts';

export const time: Handler<'time'> = (_, { nowMs }) => ({
  status: 200,
  ascii: true,
  body: `{"serverTimeMs":${nowMs}}`,
  cacheControl: 'no-store',
});
