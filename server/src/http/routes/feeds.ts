// GET /api/v1/feeds: the streams that the caller may read, by feed id.
import type { Handler } from './context.ts';

export const feeds: Handler<'feeds'> = (_, { readable }) => {
  const list = [...(readable ?? [])].sort().map((feedID) => ({ feedID }));
  return { status: 200, body: JSON.stringify({ feeds: list }), cacheControl: 'no-store' };
};
