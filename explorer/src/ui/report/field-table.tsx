// The decoded fields of a report as a table: type, unit, meaning and exact value of each, highlighted together with its bytes.
import { useComputed } from '@preact/signals';
import type { ComponentChildren } from 'preact';
import { useExplorer } from '../../state/explorer.ts';
import { Copy, Exact, Notice } from '../components.tsx';
import type { PriceDigits } from '../price/digits.ts';
import { useReportDigits } from '../price/report-digits.ts';
import { type ByteLink, linkEvents } from './byte-link.ts';
import { contextLink, contextNames, contextTexts, fieldLink } from './bytes.ts';
import type { Difference, DifferentValue } from './difference.ts';
import type { ReportReading } from './reading.ts';
import type { VerdictState } from './report-check.ts';
import { type FieldLine, quotedUnitOf, type Reading } from './report-fields.ts';
import { ReportTime } from './report-time.tsx';
import { TrustPill } from './verdict.tsx';

type TableProps = {
  readonly report: ReportReading;
  readonly link: ByteLink;
  readonly state: VerdictState;
  /** What differs from the signed report, if that is known. */
  readonly difference: Difference | undefined;
};

/** The body's fields, then the context that is signed with them. */
export function ReportFieldTable({ report, link, state, difference }: TableProps) {
  const { fields, problem, schema } = report;
  const digits = useReportDigits(report, state);
  const differenceAt = (of: string): DifferentValue | undefined => difference?.values.find((one) => one.link === of);
  return (
    <section class="card fields" aria-labelledby="fields-title">
      <div class="row">
        <h2 id="fields-title">Fields</h2>
        <span class="muted small">Schema {schema}</span>
        {state !== 'verified' && <TrustPill state={state} />}
      </div>
      {problem !== undefined && (
        <Notice kind="warning" title="Not all fields are known">
          {problem} The signatures are still verified, and the other bytes are shown word by word.
        </Notice>
      )}
      <table>
        <caption class="unseen">Decoded fields, with type, unit and exact value</caption>
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type and unit</th>
            <th scope="col">Value</th>
          </tr>
        </thead>
        <tbody>
          <PartRow part="body" title="Body" text="what the oracles report" />
          {fields?.map((field) => (
            <FieldRow
              key={field.name}
              {...{ field, link, report, digits }}
              different={differenceAt(fieldLink(field.name))}
            />
          )) ?? (
            <Row
              link={link}
              name="feedId"
              of={fieldLink('feedId')}
              type="bytes32"
              unit="32-byte ID of a stream"
              about="The report’s stream."
              different={differenceAt(fieldLink('feedId'))}
            >
              <Raw text={report.feedId} name="feedId" />
            </Row>
          )}
        </tbody>
        <tbody>
          <PartRow part="context" title="Context" text="signed with the body" />
          <ContextRows report={report} link={link} differenceAt={differenceAt} />
        </tbody>
      </table>
    </section>
  );
}

type ContextProps = Pick<TableProps, 'report' | 'link'> & {
  readonly differenceAt: (of: string) => DifferentValue | undefined;
};

const ContextRows = ({ report: { full }, link, differenceAt }: ContextProps) =>
  contextNames.map((name) => (
    <Row
      key={name} // the keys of the table itself
      link={link}
      name={name}
      of={contextLink(name)}
      type="bytes32"
      unit={name === 'epochAndRound' ? 'a number' : '32 bytes'}
      about={contextTexts[name]}
      different={differenceAt(contextLink(name))}
    >
      {name === 'epochAndRound' && <span class="reading">{BigInt(full.context[name]).toString()}</span>}
      <Raw text={full.context[name]} name={name} />
    </Row>
  ));

const PartRow = ({ part, title, text }: { readonly part: string; readonly title: string; readonly text: string }) => (
  <tr class="part-row">
    <th colSpan={3} scope="rowgroup">
      <span class={`part-mark ${part}`} aria-hidden="true">
        {title.slice(0, 1)}
      </span>{' '}
      {title}: {text}
    </th>
  </tr>
);

type FieldProps = Pick<TableProps, 'report' | 'link'> & {
  readonly field: FieldLine;
  /** Of prices. */
  readonly digits: PriceDigits | undefined;
  readonly different: DifferentValue | undefined;
};

const FieldRow = ({ field, link, report, digits, different }: FieldProps) => {
  const { catalog } = useExplorer();
  const quoteAsset = catalog.find(report.feedId)?.quoteAsset;
  return (
    <Row
      link={link}
      name={field.name}
      of={fieldLink(field.name)}
      type={field.type}
      unit={field.unit === 'price' && quoteAsset !== undefined ? `${quoteAsset} × 10¹⁸` : field.unitText}
      about={field.about}
      different={different}
    >
      <ReadingText
        reading={field.reading}
        unit={quotedUnitOf(field, quoteAsset)}
        digits={field.unit === 'price' ? digits : undefined}
      />
      <Raw text={field.raw} name={field.name} isOnly={field.reading.kind === 'plain'} />
    </Row>
  );
};

type RowProps = {
  readonly link: ByteLink;
  readonly name: string;
  /** The link that it highlights. */
  readonly of: string;
  readonly type: string;
  readonly unit: string;
  readonly about: string;
  readonly different: DifferentValue | undefined;
  readonly children: ComponentChildren;
};

const Row = ({ link, name, of, type, unit, about, different, children }: RowProps) => {
  const isActive = useComputed(() => link.active.value === of);
  const isChosen = useComputed(() => link.chosen.value === of);
  const { onPointerEnter, onPointerLeave, onFocus, onBlur } = linkEvents(link, of);
  return (
    <tr
      class={`${isActive.value ? 'active' : ''} ${different === undefined ? '' : 'altered'}`}
      onPointerEnter={onPointerEnter}
      onPointerLeave={onPointerLeave}
    >
      <th scope="row">
        <button
          type="button"
          class="field-name"
          aria-pressed={isChosen.value}
          aria-label={`${name}: highlight its bytes`}
          onFocus={onFocus}
          onBlur={onBlur}
          onClick={() => choose(link, of)}
        >
          {name}
        </button>
        <span class="field-about">{about}</span>
      </th>
      <td class="field-type">
        <code>{type}</code>
        <span class="field-unit">{unit}</span>
      </td>
      <td class="field-value">
        {different !== undefined && <AlteredText different={different} />}
        {children}
      </td>
    </tr>
  );
};

const AlteredText = ({ different: { signed, here } }: { readonly different: DifferentValue }) => (
  <dl class="altered-text small">
    <dt>Altered, signed:</dt>
    <dd>{signed}</dd>
    <dt>here:</dt>
    <dd>{here}</dd>
  </dl>
);

/** Keeps a link highlighted and scrolls to its bytes, which may be out of view on a small screen. */
export function choose(link: ByteLink, of: string): void {
  link.choose(of);
  if (link.chosen.peek() !== of) return;
  document.querySelector(`[data-link="${of}"]`)?.scrollIntoView({ block: 'nearest' });
}

const Raw = ({
  text,
  name,
  isOnly = false,
}: {
  readonly text: string;
  readonly name: string;
  readonly isOnly?: boolean;
}) => (
  <span class={`raw ${isOnly ? 'only' : ''}`}>
    <code>{text}</code>
    <Copy text={text} label={`Copy ${name} as signed`} />
  </span>
);

type ReadingProps = {
  readonly reading: Reading;
  readonly unit: string;
  readonly digits: PriceDigits | undefined;
};

const ReadingText = ({ reading, unit, digits }: ReadingProps) => {
  switch (reading.kind) {
    case 'decimal':
      return (
        <span class="reading">
          <Exact value={reading.value} digits={digits} /> {unit}
        </span>
      );
    case 'time':
      return (
        <span class="reading">
          <ReportTime ms={reading.ms} fraction={reading.fraction} />
        </span>
      );
    case 'words':
      return <span class="reading">{reading.text}</span>;
    case 'plain':
      return null;
  }
};
