// Reads a fault from JSON or from one line of text, writes the line, and gives the JSON Schema, all from the table of kinds.
import { type FaultField, type JsonSchema, momentMs, orList, showValue } from './fields.ts';
import { type CommonFieldName, commonFields, type Fault, type FaultKind, faultKindNames, kindRow } from './kinds.ts';

/** A fault that cannot be: which field is wrong, and what it may be. */
export class FaultError extends Error {
  override readonly name = 'FaultError';
  readonly field: string;

  constructor(field: string, message: string) {
    super(message);
    this.field = field;
  }
}

/** The longest text of a fault; the longest lists that a fault can have fit. */
const textMax = 32_768;

const kebab = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);

const isKind = (kind: unknown): kind is FaultKind =>
  typeof kind === 'string' && (faultKindNames as readonly string[]).includes(kind); // only widens it

const parseKind = (kind: unknown): FaultKind => {
  if (isKind(kind)) return kind;
  const what = kind === undefined ? 'kind is missing' : `kind is ${showValue(kind)}`;
  throw new FaultError('kind', `${what}, expected one of ${faultKindNames.join(', ')}.`);
};

/** All fields of a kind, its own first. */
export function fieldsOf(kind: FaultKind): Readonly<Record<string, FaultField>> {
  const { fields, without = [] } = kindRow(kind);
  const common = Object.entries<FaultField>(commonFields).filter(
    ([name]) => !without.includes(name as CommonFieldName), // the table's own keys
  );
  return { ...fields, ...Object.fromEntries(common) };
}

const unknownField = (kind: FaultKind, name: string, spell: (name: string) => string): FaultError =>
  new FaultError(
    name,
    `${showValue(name)} is not a field of the fault ${kind}. Fields: ${Object.keys(fieldsOf(kind)).map(spell).join(', ')}.`,
  );

/**
 * Reads a fault: an object, or a line such as `status=503,retry-after=2,probability=0.1,route=reportLatest`. Throws a FaultError that names the field
 * and what it may be.
 */
export function parseFault(value: unknown): Fault {
  if (typeof value === 'string') return parseFields(readText(value), kebab);
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new FaultError(
      'kind',
      `The fault is ${showValue(value)}, expected an object with the field kind, or a line of text.`,
    );
  return parseFields(value as Readonly<Record<string, unknown>>, (name) => name); // an object, not null, not an array
}

const parseFields = (given: Readonly<Record<string, unknown>>, spell: (name: string) => string): Fault => {
  const kind = parseKind(given.kind);
  const fields = fieldsOf(kind);
  const fault: Record<string, unknown> = { kind };
  for (const name of Object.keys(given))
    if (name !== 'kind' && !Object.hasOwn(fields, name)) throw unknownField(kind, name, spell);
  for (const [name, field] of Object.entries(fields)) {
    const value = given[name];
    if (value === undefined && !field.required) continue;
    const parsed = value === undefined ? undefined : field.parse(value);
    const what = value === undefined ? 'is missing' : `is ${showValue(value)}`;
    if (parsed === undefined) throw new FaultError(name, `${spell(name)} ${what}, expected ${field.expected}.`);
    fault[name] = parsed;
  }
  const checked = fault as Fault; // every field was parsed by the row that its type is derived from
  checkSpan(checked);
  return checked;
};

const checkSpan = ({ kind, from, to, for: lasts }: Fault): void => {
  if (to !== undefined && lasts !== undefined)
    throw new FaultError('for', 'for and to are both given, expected one of them.');
  if (kind === 'gap' && to === undefined && lasts === undefined)
    throw new FaultError('to', 'to is missing: a gap ends. Give to or for, or use the fault stop.');
  const [startMs, endMs] = [from, to].map((moment) => (moment === undefined ? undefined : momentMs(moment, 0)));
  const areDates = [from, to].every((moment) => moment?.includes('T'));
  const areDurations = [from, to].every((moment) => moment !== undefined && !moment.includes('T'));
  if ((areDates || areDurations) && startMs !== undefined && endMs !== undefined && endMs <= startMs)
    throw new FaultError('to', `to is ${showValue(to)}, expected a time after from, which is ${showValue(from)}.`);
};

/** The fields of a line, as JSON has them. */
const readText = (line: string): Readonly<Record<string, unknown>> => {
  if (line.length > textMax) throw new FaultError('kind', `The fault has more than ${textMax} characters.`);
  const [first = '', ...others] = line.split(',').map((piece) => piece.trim());
  const [head, main] = cut(first);
  const kind = parseKind(head);
  const fields = fieldsOf(kind);
  const given: Record<string, unknown> = { kind };
  const set = (name: string, text: string): void => {
    const key = Object.keys(fields).find((one) => one === name || kebab(one) === name);
    if (key === undefined) throw unknownField(kind, name, kebab);
    if (given[key] !== undefined) throw new FaultError(key, `${name} is given twice, expected once.`);
    given[key] = fields[key]?.read(text);
  };
  const { main: mainField } = kindRow(kind);
  if (main !== undefined && mainField === undefined)
    throw new FaultError(
      'kind',
      `The fault ${kind} has no value of its own. Write ${kind} without ${showValue(`=${main}`)}.`,
    );
  if (main !== undefined && mainField !== undefined) set(mainField, main);
  for (const piece of others) {
    const [name, text = ''] = cut(piece);
    set(name, text);
  }
  return given;
};

const cut = (piece: string): readonly [string, string?] => {
  const at = piece.indexOf('=');
  return at === -1 ? [piece] : [piece.slice(0, at).trim(), piece.slice(at + 1).trim()];
};

/** A fault as the line that `parseFault` reads. */
export function formatFault(fault: Fault): string {
  const { kind, ...values } = fault;
  const { main } = kindRow(kind);
  const write = (value: unknown): string => (Array.isArray(value) ? value.join('+') : String(value));
  const named: Readonly<Record<string, unknown>> = values;
  const head = main !== undefined && named[main] !== undefined ? `${kind}=${write(named[main])}` : kind;
  const rest = Object.entries(named).filter(([name, value]) => name !== main && value !== undefined);
  const { fields } = kindRow(kind);
  const words = rest.map(([name, value]) => `${kebab(name)}=${(fields[name]?.write ?? write)(value)}`);
  return [head, ...words].join(',');
}

const describe = ({ schema, about }: FaultField): JsonSchema => ({ ...schema, description: about });

/** The JSON Schema (2020-12) of a fault's JSON form, one alternative for each kind. */
export const faultSchema = (): JsonSchema => ({
  description: `A fault of the sandbox: ${orList(faultKindNames)}.`,
  oneOf: faultKindNames.map((kind) => {
    const fields = Object.entries(fieldsOf(kind));
    return {
      type: 'object',
      title: kind,
      description: kindRow(kind).about,
      properties: {
        kind: { const: kind },
        ...Object.fromEntries(fields.map(([name, field]) => [name, describe(field)])),
      },
      required: ['kind', ...fields.flatMap(([name, field]) => (field.required ? [name] : []))],
      additionalProperties: false,
    };
  }),
});
