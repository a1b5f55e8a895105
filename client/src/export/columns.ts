// The columns of an export: which fields each schema has, what kind of value they hold, and how a value is read from a decoded report. A name
// means the same kind in every schema, so that files of different schemas can be read together (D187).
import {
  decodeFullReport,
  decodeReportBody,
  type Field,
  type FieldUnit,
  isSchemaVersion,
  type ReportBody,
  ReportFormatError,
  type ReportJson,
  reportSchemas,
  type SchemaVersion,
  windowOf,
} from '@sealpost/protocol';

/** A stream under the name that the export uses. */
export type ExportStream = { readonly feedId: ReportBody['feedId']; readonly name: string };

/** `number`: up to 2^53. `integer`: up to 2^64. `decimal`: times 10^18. `digits`: an integer of any size as text. `moment`: microseconds since 1970. */
export type ColumnKind = 'text' | 'number' | 'integer' | 'decimal' | 'digits' | 'moment';

/** Text, a number or a bigint by the kind of its column; null where a report has no such value. */
export type Value = string | number | bigint | null;

/** The values of one report, in the order of the columns. */
export type ExportRow = readonly Value[];

/** A report that an export has read; `fields` are empty unless its columns need them. */
type ReadReport = {
  readonly stream: Readonly<Record<keyof ExportStream, string>>;
  readonly report: ReportJson;
  readonly fields: Readonly<Record<string, unknown>>;
  /** Milliseconds of one unit of the stream's own times. */
  readonly unitMs: number;
};

export type ExportColumn = {
  readonly name: string;
  readonly kind: ColumnKind;
  /** A moment is written to the microsecond; others to the millisecond. The same in every row: parsers look at the first. */
  readonly isFine?: boolean;
  readonly read: (report: ReadReport) => Value;
};

/** What an export writes of each report. */
export type ColumnOptions = {
  /** Fields of the body; without it, the report as the API sends it. */
  readonly isDecoded: boolean;
  /** Decimals as the signed integers. */
  readonly isRaw: boolean;
  /** The signed report as well. */
  readonly hasFullReport: boolean;
};

const decimalUnits: readonly FieldUnit[] = ['price', 'amount', 'ratio', 'native token', 'LINK'];
const oneInDecimals = 10n ** 18n;

const schemaVersions = Object.keys(reportSchemas).map(Number).filter(isSchemaVersion);
const fieldsOf = (version: SchemaVersion): readonly Field[] => reportSchemas[version].fields;
const allFields = schemaVersions.flatMap(fieldsOf);

/** Names that are decimals in one schema, and so in all: volumes are amounts in version 11 and counts in version 13. */
const decimalNames = new Set(allFields.filter(({ unit }) => decimalUnits.includes(unit)).map(({ name }) => name));

const isTime = ({ name, unit }: Field): boolean =>
  unit === 'stream time' || unit === 'nanoseconds' || (unit === 'seconds' && name !== 'duration');

/** The last microsecond that is written as a time: ISO years have four digits. */
const momentMax = BigInt(Date.UTC(9999, 11, 31, 23, 59, 59, 999)) * 1_000n + 999n;

/** A time in microseconds; null after the year 9999. */
const toMoment = (microseconds: bigint): bigint | null => (microseconds > momentMax ? null : microseconds);

const wholeOf = (value: unknown): bigint => BigInt(value as bigint | number); // fields other than hashes are one of them

const momentOf = ({ unit }: Field, value: unknown, unitMs: number): bigint | null => {
  if (unit === 'nanoseconds') return toMoment(wholeOf(value) / 1_000n);
  return toMoment(wholeOf(value) * (unit === 'stream time' ? BigInt(unitMs) * 1_000n : 1_000_000n));
};

const fieldColumn = (field: Field, isRaw: boolean): ExportColumn => {
  const { name, type, unit } = field;
  const column = (kind: ColumnKind, of: (value: unknown, read: ReadReport) => Value): ExportColumn => ({
    name,
    kind,
    read: (read) => (read.fields[name] === undefined ? null : of(read.fields[name], read)),
  });
  if (type === 'bytes32') return column('text', String);
  if (unit === 'stream time')
    return column('number', (value, { unitMs }) => Math.floor((Number(value) * unitMs) / 1_000));
  if (decimalNames.has(name)) {
    if (isRaw) return column('digits', String);
    const scale = decimalUnits.includes(unit) ? 1n : oneInDecimals;
    return column('decimal', (value) => wholeOf(value) * scale);
  }
  return type === 'uint32' ? column('number', Number) : column('integer', wholeOf);
};

const momentColumn = (field: Field): ExportColumn => ({
  name: `${field.name}UTC`,
  kind: 'moment',
  isFine: field.unit === 'nanoseconds',
  read: ({ fields, unitMs }) => (fields[field.name] === undefined ? null : momentOf(field, fields[field.name], unitMs)),
});

const text = (name: string, read: (report: ReadReport) => string): ExportColumn => ({ name, kind: 'text', read });
const feedId = text('feedID', ({ report }) => report.feedID);
const fullReport = text('fullReport', ({ report }) => report.fullReport);
const time = (name: 'validFromTimestamp' | 'observationsTimestamp'): ExportColumn => ({
  name,
  kind: 'number',
  read: ({ report }) => report[name],
});

/** The report as the API sends it, in its order. */
const signedColumns: readonly ExportColumn[] = [
  feedId,
  time('validFromTimestamp'),
  time('observationsTimestamp'),
  fullReport,
];

/** The columns of reports of some schemas: those of the first, then what the others have in addition. */
export function columnsOf(versions: readonly SchemaVersion[], options: ColumnOptions): readonly ExportColumn[] {
  if (!options.isDecoded) return signedColumns;
  const columns = new Map<string, ExportColumn>();
  for (const version of versions)
    for (const field of fieldsOf(version)) {
      if (field.name === 'feedId') continue;
      columns.set(field.name, unionColumn(field.name, options.isRaw));
      if (isTime(field)) columns.set(`${field.name}UTC`, momentColumn(field));
    }
  return [
    text('name', ({ stream }) => stream.name),
    feedId,
    { name: 'version', kind: 'number', read: ({ fields }) => Number(fields.version) },
    ...columns.values(),
    ...(options.hasFullReport ? [fullReport] : []),
  ];
}

/** A column that reads the field of that name of whichever schema a report has. */
const unionColumn = (name: string, isRaw: boolean): ExportColumn => {
  const readers = new Map<number, ExportColumn>();
  for (const version of schemaVersions) {
    const field = fieldsOf(version).find((one) => one.name === name);
    if (field !== undefined) readers.set(version, fieldColumn(field, isRaw));
  }
  const [first] = readers.values();
  return {
    name,
    kind: first?.kind ?? 'text',
    read: (report) => readers.get(Number(report.fields.version))?.read(report) ?? null,
  };
};

/** The row of a report, or why there is none. */
export function exportRowOf(
  columns: readonly ExportColumn[],
  stream: ReadReport['stream'],
  report: ReportJson,
  isDecoded: boolean,
): { readonly row: ExportRow; readonly problem?: never } | { readonly row?: never; readonly problem: string } {
  if (!isDecoded) {
    const read = { stream, report, fields: {}, unitMs: 1_000 };
    return { row: columns.map((column) => column.read(read)) };
  }
  try {
    const body = decodeReportBody(decodeFullReport(report.fullReport).body);
    const { observationsMs } = windowOf(body);
    if (body.feedId !== stream.feedId) return { problem: `its bytes are a report of ${body.feedId}` };
    if (Math.floor(observationsMs / 1_000) !== report.observationsTimestamp)
      return { problem: `its bytes were observed at ${Math.floor(observationsMs / 1_000)}` };
    const unitMs = observationsMs === body.observationsTimestamp ? 1 : 1_000;
    const read: ReadReport = { stream, report, fields: { ...body }, unitMs };
    return { row: columns.map((column) => column.read(read)) };
  } catch (error) {
    if (!(error instanceof ReportFormatError)) throw error;
    const code = error.reason === 'unknown_schema' ? `${error.reason}: ` : '';
    return { problem: `${code}${error.message.replace(/\.$/, '')}` };
  }
}
