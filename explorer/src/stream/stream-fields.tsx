// Every field of the newest report, by the stream's schema: type, unit and value, live.
import type { CatalogEntry } from '@sealpost/protocol';
import { reportSchemas } from '@sealpost/protocol';
import { useExplorer } from '../state/explorer.ts';
import { Exact, Time } from '../ui/components.tsx';
import { describeFields, type FieldLine } from '../ui/report/report-fields.ts';

/** The latest time of a Date; a field may hold a later one. */
const dateMaxMs = 8.64e15;

export function StreamFields({ stream }: { readonly stream: CatalogEntry }) {
  const { live } = useExplorer();
  const decoded = live.latest(stream.feedId).value?.decoded;
  if (decoded === undefined) return null;
  return (
    <section class="card stack" aria-labelledby="fields-title">
      <div class="row">
        <h2 id="fields-title">All fields of the newest report</h2>
        <span class="muted small">
          Schema {stream.schemaVersion} · {reportSchemas[decoded.version].title}
        </span>
      </div>
      <table class="small stream-fields">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Unit</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          {describeFields(decoded.fields).map((field) => (
            <tr key={field.name}>
              <th scope="row" title={field.about}>
                {field.name}
              </th>
              <td>
                <code>{field.type}</code>
              </td>
              <td>{unitOf(field, stream)}</td>
              <td class="stream-fields-value">
                <FieldValue field={field} feedId={stream.feedId} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** The unit of the value as it is shown, not of the signed integer. */
const unitOf = ({ name, unit, unitText }: FieldLine, { quoteAsset }: CatalogEntry): string => {
  if (name === 'duration') return 'seconds';
  if (unit === 'price' || name === 'exchangeRate') return quoteAsset;
  if (unit === 'amount' || unit === 'ratio' || unit === 'native token' || unit === 'LINK' || unit === 'count')
    return unit;
  if (unit === 'feed ID') return '32 bytes';
  return ['stream time', 'seconds', 'nanoseconds'].includes(unit) ? 'time' : unitText;
};

const FieldValue = ({
  field: { reading, raw, unit },
  feedId,
}: {
  readonly field: FieldLine;
  readonly feedId: string;
}) => {
  const { live } = useExplorer();
  const digits = unit === 'price' ? live.digits(feedId).value : undefined;
  switch (reading.kind) {
    case 'decimal':
      return <Exact value={reading.value} digits={digits} />;
    case 'time':
      return reading.ms > dateMaxMs ? <code>{raw}</code> : <Time ms={reading.ms} />;
    case 'words':
      return <>{reading.text}</>;
    case 'plain':
      return <code>{raw}</code>;
  }
};
