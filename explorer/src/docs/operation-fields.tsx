// Parameters, body fields and headers as rows: name, type and limits, meaning.
import { Copy } from '../ui/components.tsx';
import { firstValues, headersLast } from './arguments.ts';
import { useDocs } from './docs-context.ts';
import type { DocsAnswer, DocsOperation, DocsSchema } from './document.ts';
import { InlineText } from './prose.tsx';
import { bodyForms, limitTexts, schemaRows, typeText } from './schema-rows.ts';

type RowProps = {
  readonly name: string;
  readonly depth?: number;
  readonly notes: readonly string[];
  readonly type: string;
  readonly limits: readonly string[];
  readonly about: string;
  readonly example?: string;
};

const isPattern = (limit: string): boolean => limit.startsWith('^');

const FieldRow = ({ name, depth = 0, notes, type, limits, about, example = '' }: RowProps) => (
  <div class={`docs-field depth-${Math.min(depth, 4)}`}>
    <dt>
      <code>{name}</code>
      {notes.map((note) => (
        <span key={note} class={`docs-note ${note === 'required' ? 'is-required' : ''}`}>
          {note}
        </span>
      ))}
    </dt>
    <dd>
      {about !== '' && <InlineText text={about} />}{' '}
      <span class="docs-type">
        {type}
        {limits.map((limit) => (
          <span key={limit}> · {isPattern(limit) ? <code>{limit}</code> : limit}</span>
        ))}
      </span>
      {example !== '' && (
        <span class="docs-example">
          <span>
            Example: <code>{example}</code>
          </span>
          <Copy text={example} label={`Copy the example of ${name}`} />
        </span>
      )}
    </dd>
  </div>
);

/** With an example where this server has one. */
export function ParameterFields({ operation }: { readonly operation: DocsOperation }) {
  const { streams, nowSeconds } = useDocs();
  const examples = firstValues(operation, streams, nowSeconds);
  return (
    <dl class="docs-fields">
      {headersLast(operation.parameters).map(({ name, in: location, required, description, schema }) => (
        <FieldRow
          key={`${location} ${name}`}
          name={name}
          notes={[...(required ? ['required'] : []), ...(location === 'header' ? ['header'] : [])]}
          type={typeText(schema)}
          limits={limitTexts(schema)}
          about={description}
          example={examples[name] ?? ''}
        />
      ))}
    </dl>
  );
}

const BodyFields = ({ schema }: { readonly schema: DocsSchema }) => {
  const { docs } = useDocs();
  const rows = schemaRows(schema, docs.schemas);
  if (rows.length === 0) return null;
  return (
    <dl class="docs-fields">
      {rows.map(({ path, name, depth, type, limits, isRequired, about }) => (
        <FieldRow
          key={path}
          name={name}
          depth={depth}
          notes={isRequired ? [] : ['not always']}
          type={type}
          limits={limits}
          about={about}
        />
      ))}
    </dl>
  );
};

/** The headers and body of an answer. A path with several forms has several bodies. */
export function AnswerFields({ answer }: { readonly answer: DocsAnswer }) {
  const { schema, contentType, headers } = answer;
  const forms = schema === undefined || contentType !== 'application/json' ? [] : bodyForms(schema);
  return (
    <>
      {forms.map((form) => (
        <div key={typeText(form)}>
          <h4>
            Body: <code>{typeText(form)}</code>
          </h4>
          <BodyFields schema={form} />
        </div>
      ))}
      {forms.length === 0 && contentType !== undefined && (
        <p class="muted">
          Body: <code>{contentType}</code>
        </p>
      )}
      {headers.length > 0 && (
        <>
          <h4>Headers</h4>
          <dl class="docs-fields">
            {headers.map(({ name, about }) => (
              <FieldRow key={name} name={name} notes={[]} type="" limits={[]} about={about} />
            ))}
          </dl>
        </>
      )}
    </>
  );
}
