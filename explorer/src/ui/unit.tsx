// The unit after a price, from the catalog and the report's schema.
import type { DecodedReport } from '@sealpost/client';
import { useExplorer } from '../state/explorer.ts';
import { unitTextOf } from './price-unit.ts';

/** What a report's price is in; nothing if its stream is not in the catalog. */
export function Unit({ decoded }: { readonly decoded: DecodedReport }) {
  const { catalog } = useExplorer();
  const text = unitTextOf(decoded.version, decoded.price, catalog.find(decoded.feedId)?.quoteAsset);
  return text === '' ? null : <span class="muted price-unit">{text}</span>;
}
