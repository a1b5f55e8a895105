// GET /api/v1/discovery: the catalog, filtered. Anonymous answers may be cached publicly, others not at all. An entry is rendered once per
// version of its record, and a large catalog in slices: 2,000 streams take 10 ms to render. What every caller gets is kept until the catalog changes.
import { type Stream, toCatalogEntry } from '@sealpost/protocol';
import { createStreamListing } from '../../access/entitlements.ts';
import { createValuesByObject } from '../../runtime/kept-values.ts';
import { type Answer, lengthOf } from '../answer.ts';
import type { Handler } from './context.ts';
import { listBody } from './report-bodies.ts';

/** Entries that are joined before other requests get a turn. */
const sliceSize = 250;

type Body = NonNullable<Answer['body']>;

const render = async (streams: readonly Stream[], entryOf: (stream: Stream) => string): Promise<Body> => {
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

/** Bytes of all kept bodies: two of 2,000 streams. */
const keptBytesMax = 2_000_000;

export const createDiscoveryRoute = (): Handler<'discovery'> => {
  const listStreams = createStreamListing();
  const rendered = new WeakMap<Stream, string>();
  const entryOf = (stream: Stream): string => {
    const entry = rendered.get(stream) ?? JSON.stringify(toCatalogEntry(stream));
    rendered.set(stream, entry);
    return entry;
  };
  // By the filter itself: the parser gives the same one for the same text.
  const kept = createValuesByObject<object, { readonly streams: object; readonly body: Body }>(keptBytesMax);
  return (filter, { admin, readable }) => {
    const cacheControl = readable === undefined ? 'public, max-age=300' : 'no-store';
    const answer = (body: Body): Answer => ({ status: 200, body, cacheControl, headers: ['Vary', 'Authorization'] });
    const isForAll = filter.hidden !== true; // the same for every caller
    const { streams } = admin;
    const found = isForAll ? kept.get(filter) : undefined;
    if (found?.streams === streams) return answer(found.body); // at once: what is promised needs a deadline
    return render(listStreams(streams, filter, readable), entryOf).then((body) => {
      if (isForAll) kept.put(filter, { streams, body }, lengthOf({ body }));
      return answer(body);
    });
  };
};
