// GET /api/v1/discovery: the catalog, filtered. Anonymous answers may be cached publicly, others not at all. An entry is rendered once per
// version of its record, and a large catalog is filtered and rendered in slices: 2,000 streams take 10 ms. What every caller gets is kept until the
// catalog changes.
import { type DiscoveryFilter, type Stream, toCatalogEntry } from '@sealpost/protocol';
import { createStreamOrder, isListed } from '../../access/entitlements.ts';
import { type LongWork, runForClient, slicesFor } from '../../access/long-work.ts';
import { createValuesByObject } from '../../runtime/kept-values.ts';
import { type Answer, lengthOf } from '../answer.ts';
import type { Handler, RouteContext } from './context.ts';
import { listBody } from './report-bodies.ts';

/** Streams that are filtered and rendered between two looks at the clock; a catalog of as many needs no slices. */
const groupSize = 100;

type Body = NonNullable<Answer['body']>;

/** The entries of some streams, or nothing where all of them are left out. */
type Render = (streams: readonly Stream[]) => readonly Buffer[];

/** An account has one list made at a time. Anonymous callers, who are not told apart here, only wait for each other's slices. */
const renderInSlices = async (streams: readonly Stream[], render: Render, context: RouteContext): Promise<Body> => {
  const { longWork, userId, client } = context;
  const work = async (slice: LongWork['slice']): Promise<readonly Buffer[]> => {
    const pieces: Buffer[] = [];
    for (let next = 0; next < streams.length; )
      await slice(async (isOver) => {
        do {
          pieces.push(...render(streams.slice(next, next + groupSize)));
          next += groupSize;
        } while (next < streams.length && !isOver());
      });
    return pieces;
  };
  const pieces =
    userId === '' ? await work(slicesFor(longWork, client)) : await runForClient(longWork, userId, client, work);
  return listBody('feeds', pieces);
};

/** Bytes of all kept bodies: two of 2,000 streams. */
const keptBytesMax = 2_000_000;

export function createDiscoveryRoute(): Handler<'discovery'> {
  const inOrder = createStreamOrder();
  const rendered = new WeakMap<Stream, string>();
  const entryOf = (stream: Stream): string => {
    const entry = rendered.get(stream) ?? JSON.stringify(toCatalogEntry(stream));
    rendered.set(stream, entry);
    return entry;
  };
  const renderFor =
    (filter: DiscoveryFilter, readable: RouteContext['readable']): Render =>
    (streams) => {
      const entries = streams.flatMap((stream) => (isListed(stream, filter, readable) ? [entryOf(stream)] : []));
      return entries.length === 0 ? [] : [Buffer.from(entries.join(','))];
    };
  const makeBody = (filter: DiscoveryFilter, context: RouteContext): Body | Promise<Body> => {
    const streams = inOrder(context.admin.streams);
    const render = renderFor(filter, context.readable);
    return streams.length <= groupSize ? listBody('feeds', render(streams)) : renderInSlices(streams, render, context);
  };
  // By the filter itself: the parser gives the same one for the same text.
  const kept = createValuesByObject<object, { readonly streams: object; readonly body: Body }>(keptBytesMax);
  return (filter, context) => {
    const cacheControl = context.readable === undefined ? 'public, max-age=300' : 'no-store';
    const answer = (body: Body): Answer => ({ status: 200, body, cacheControl, headers: ['Vary', 'Authorization'] });
    const isForAll = filter.hidden !== true || context.readable === undefined; // the same for every such caller
    const { streams } = context.admin;
    const found = isForAll ? kept.get(filter) : undefined;
    if (found?.streams === streams) return answer(found.body); // at once: what is promised needs a deadline
    const keep = (body: Body): Answer => {
      if (isForAll) kept.put(filter, { streams, body }, lengthOf({ body }));
      return answer(body);
    };
    const made = makeBody(filter, context);
    return made instanceof Promise ? made.then(keep) : keep(made);
  };
}
