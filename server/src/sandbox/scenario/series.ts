// From a series of prices to what it does: pushes, for streams that are never simulated.
import type { FeedId } from '@sealpost/protocol';
import { createBody } from '../push/body.ts';
import type { PushAct } from '../push/outcomes.ts';
import { parsePrice } from '../push/prices.ts';
import { inRow, type TimedRow } from '../push/series.ts';
import { type Catalog, type CompiledEvent, eventFeedIds } from './compile.ts';

/** Throws a SandboxError or a ScenarioError that names the line. */
export const compileSeries = (rows: readonly TimedRow[], catalog: Catalog): CompiledEvent => {
  const found = new Map<string, Catalog[number]>();
  const streamOf = (asked: string, where: string): Catalog[number] => {
    const known = found.get(asked);
    if (known !== undefined) return known;
    const [feedId] = eventFeedIds(asked, catalog, where);
    const stream = catalog.find((one) => one.feedId === feedId) as Catalog[number]; // or it threw
    found.set(asked, stream);
    return stream;
  };
  const acts = rows.map(({ where, ms, stream: asked, price, options }): PushAct => {
    const stream = streamOf(asked, where);
    const window = { validFromMs: ms, observationsMs: ms };
    inRow(where, () => createBody(stream, parsePrice('price', price), window, options));
    const report = { stream, price, options: { ...options, at: new Date(ms) } };
    return { kind: 'push', second: Math.ceil(ms / 1_000), report };
  });
  const feedIds: readonly FeedId[] = [...new Set([...found.values()].map(({ feedId }) => feedId))];
  const silence = { kind: 'silence', from: 0, to: Number.POSITIVE_INFINITY, feedIds, backfill: false } as const;
  return { effects: [silence], acts };
};
