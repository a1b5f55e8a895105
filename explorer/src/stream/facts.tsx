// The details card of a stream: every field of its catalog entry.
import {
  type CatalogEntry,
  isSchemaVersion,
  reportSchemas,
  schemaVersionOf,
  timeResolutionOf,
} from '@sealpost/protocol';
import { Time } from '../ui/components.tsx';

const schemaText = ({ feedId, schemaVersion }: CatalogEntry): string => {
  const version = schemaVersionOf(feedId);
  return isSchemaVersion(version) ? `${schemaVersion} · ${reportSchemas[version].title}` : schemaVersion;
};

const DateFact = ({ name, date }: { readonly name: string; readonly date: string | null }) =>
  date === null ? null : (
    <>
      <dt>{name}</dt>
      <dd>
        <Time ms={Date.parse(date)} />
      </dd>
    </>
  );

export function StreamFacts({ stream }: { readonly stream: CatalogEntry }) {
  const rows = [
    ['Name', stream.name],
    ['Asset', stream.assetName],
    ['Pair', `${stream.baseAsset} / ${stream.quoteAsset}`],
    ['Asset class', stream.assetClass],
    ['Feed type', stream.feedType],
    ['Attribute', stream.attributeType],
    ['Market hours', stream.marketHours],
    ['Report schema', schemaText(stream)],
    ['Timestamp resolution', timeResolutionOf(stream.feedId) ?? 'unknown'],
    ['Service level', stream.serviceLevel],
    ['Network', stream.networkType],
    ['Status', stream.status],
  ] as const;
  return (
    <section class="card stack" aria-labelledby="facts-title">
      <h2 id="facts-title">Stream details</h2>
      <dl class="facts small">
        {rows.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
        <DateFact name="Created" date={stream.createdAt} />
        <DateFact name="Decommission expected" date={stream.expectedDecommissionAt} />
        <DateFact name="Decommissioned" date={stream.decommissionedAt} />
      </dl>
    </section>
  );
}

const Fact = ({ name, value }: { readonly name: string; readonly value: string }) => (
  <>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </>
);
