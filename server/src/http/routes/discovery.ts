// GET /api/v1/discovery: the catalog, filtered. Anonymous answers may be cached publicly, others not at all. An entry is rendered once per
// version of its record, and a large catalog in slices: 2,000 streams take 10 ms to render.
import { type Stream, toCatalogEntry } from '@sealpost/protocol';
import { createStreamListing } from '../../access/entitlements.ts';
import type { Handler } from './context.ts';
import { listBody } from './report-bodies.ts';

/** Entries that are joined before other requests get a turn. */
const sliceSize = 250;

const render = async (streams: readonly Stream[], entryOf: (stream: Stream) => string): Promise<readonly Buffer[]> => {
  const pieces: Buffer[] = [];
  for (let i = 0; i < streams.length; i += sliceSize) {
    if (i > 0) await new Promise((resolve) => setImmediate(resolve));
    pieces.push(
      Buffer.from(
        streams
          .slice(i, i + sliceSize)
          .map(entryOf)
          .join(','),
      ),
    );
  }
  return listBody('feeds', pieces);
};

export const createDiscoveryRoute = (): Handler<'discovery'> => {
  const listStreams = createStreamListing();
  const rendered = new WeakMap<Stream, string>();
  const entryOf = (stream: Stream): string => {
    const entry = rendered.get(stream) ?? JSON.stringify(toCatalogEntry(stream));
    rendered.set(stream, entry);
    return entry;
  };
  return async (filter, { admin, readable }) => {
    const body = await render(listStreams(admin.streams, filter, readable), entryOf);
    const cacheControl = readable === undefined ? 'public, max-age=300' : 'no-store';
    return { status: 200, body, cacheControl, headers: ['Vary', 'Authorization'] };
  };
};
