// GET /api/v1/discovery: the catalog, filtered. Anonymous answers may be cached by anyone, others by no one.
import { toCatalogEntry } from '@sealpost/protocol';
import { listedStreams } from '../../access/entitlements.ts';
import type { Handler } from './context.ts';

export const discovery: Handler<'discovery'> = (filter, { admin, readable }) => {
  const feeds = listedStreams(admin.streams, filter, readable).map(toCatalogEntry);
  const cacheControl = readable === undefined ? 'public, max-age=300' : 'no-store';
  return { status: 200, body: JSON.stringify({ feeds }), cacheControl, headers: ['Vary', 'Authorization'] };
};
