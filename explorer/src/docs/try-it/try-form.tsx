// The form of an operation's arguments, filled with values that work.
import type { OpenApiParameter } from '@sealpost/protocol/openapi';
import type { JSX } from 'preact';
import { Time } from '../../ui/components.tsx';
import { type ArgumentValues, headerProblem, headersLast } from '../arguments.ts';
import { useDocs } from '../docs-context.ts';
import type { DocsOperation } from '../document.ts';
import { limitTexts, typeText } from '../schema-rows.ts';

type FieldProps = {
  readonly id: string;
  readonly parameter: OpenApiParameter;
  readonly value: string;
  readonly onChange: (value: string) => void;
};

/** The values to choose from; undefined for free text. */
const choicesOf = ({ schema }: OpenApiParameter): readonly string[] | undefined => {
  if (schema.type === 'boolean') return ['true', 'false'];
  return schema.enum?.map(String);
};

const isTime = ({ schema }: OpenApiParameter): boolean => schema.format === 'int64';
const isFeedId = ({ schema }: OpenApiParameter): boolean =>
  (schema.pattern ?? schema.items?.pattern ?? '').startsWith('^0x');

const hintOf = ({ schema }: OpenApiParameter): string =>
  [
    typeText(schema),
    ...limitTexts(schema).filter((limit) => !limit.startsWith('^')),
    ...(schema.type === 'array' ? ['separated by commas'] : []),
  ].join(', ');

/** Why a value cannot be sent at all; the server judges the rest. */
const problemOf = (parameter: OpenApiParameter, value: string): string | undefined =>
  parameter.in === 'header' ? headerProblem(parameter.name, value) : undefined;

const ArgumentField = ({ id, parameter, value, onChange }: FieldProps) => {
  const { name, required } = parameter;
  const choices = choicesOf(parameter);
  const problem = problemOf(parameter, value);
  const isInvalid = problem !== undefined;
  const about = isInvalid ? `${id}-problem ${id}-hint` : `${id}-hint`;
  const common = { id, name, value, required, 'aria-invalid': isInvalid, 'aria-describedby': about };
  return (
    <div class={`field ${isFeedId(parameter) ? 'is-wide' : ''}`}>
      <label for={id}>
        <code>{name}</code>
        {required && (
          <span class="docs-note is-required" aria-hidden="true">
            required
          </span>
        )}
      </label>
      {choices === undefined ? (
        <input
          {...common}
          type="text"
          class="mono"
          autocomplete="off"
          spellcheck={false}
          list={isFeedId(parameter) ? 'docs-feed-ids' : undefined}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      ) : (
        <select {...common} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
          <option value="">not sent</option>
          {choices.map((choice) => (
            <option key={choice} value={choice}>
              {choice}
            </option>
          ))}
        </select>
      )}
      {isInvalid && (
        <p id={`${id}-problem`} class="bad small" role="alert">
          {problem}
        </p>
      )}
      <p id={`${id}-hint`} class="muted small">
        {isTime(parameter) && /^[0-9]{9,10}$/.test(value) ? <Time ms={Number(value) * 1_000} /> : hintOf(parameter)}
      </p>
    </div>
  );
};

const fieldId = (operationId: string, { name }: OpenApiParameter): string => `${operationId}-argument-${name}`;

export function ArgumentForm({
  operation,
  values,
  onChange,
  onSubmit,
  children,
}: {
  readonly operation: DocsOperation;
  readonly values: ArgumentValues;
  readonly onChange: (values: ArgumentValues) => void;
  readonly onSubmit: () => void;
  readonly children: JSX.Element;
}) {
  const { streams } = useDocs();
  const { id, parameters, transport } = operation;
  // Browsers send no headers with a WebSocket.
  const fields = headersLast(parameters.filter((parameter) => parameter.in === 'query' || transport !== 'websocket'));
  const submit = (event: Event): void => {
    event.preventDefault();
    const wrong = fields.find((parameter) => problemOf(parameter, values[parameter.name] ?? '') !== undefined);
    if (wrong === undefined) onSubmit();
    else document.getElementById(fieldId(id, wrong))?.focus();
  };
  return (
    <form class="docs-form" noValidate onSubmit={submit}>
      {fields.length > 0 && (
        <div class="docs-form-fields">
          {fields.map((parameter) => (
            <ArgumentField
              key={parameter.name}
              id={fieldId(id, parameter)}
              parameter={parameter}
              value={values[parameter.name] ?? ''}
              onChange={(value) => onChange({ ...values, [parameter.name]: value })}
            />
          ))}
        </div>
      )}
      <datalist id="docs-feed-ids">
        {streams.entries.map(({ feedId, name }) => (
          <option key={feedId} value={feedId}>
            {name}
          </option>
        ))}
      </datalist>
      {children}
    </form>
  );
}
