// HEAD /: which origins a client may open connections to, when any are configured.
import type { Handler } from './context.ts';

export const origins: Handler<'origins'> = (_, context) => ({
  status: 200,
  cacheControl: 'no-store',
  ...(context.origins.length > 0 && { headers: ['X-Cll-Available-Origins', `{${context.origins.join(',')}}`] }),
});
