// The arguments of an export: what is written of each report, in which format, and of which time range.

import type { ColumnOptions } from '@sealpost/client/export';
import { secondsMax } from '@sealpost/protocol';
import type { RawOptions } from '../../command-options.ts';
import { usageError } from '../../failure.ts';
import { parseSpan } from '../../time-arguments.ts';
import type { ExportSpan } from './source.ts';

export const formatNames = ['ndjson', 'csv', 'parquet'] as const;
export type FormatName = (typeof formatNames)[number];

export type ExportArguments = ColumnOptions & {
  /** Streams as given; none for all. */
  readonly feeds: readonly string[];
  readonly format: FormatName;
  /** The folder for files; undefined for stdout. */
  readonly out: string | undefined;
  readonly span: ExportSpan;
  /** Times as given; null for the oldest and the newest. */
  readonly times: { readonly from: string | null; readonly to: string | null };
};

/** Reads the arguments; throws a usage error that names what does not fit together. */
export const parseArguments = (feeds: readonly string[], options: RawOptions, nowSeconds: number): ExportArguments => {
  const [format, out] = [parseFormat(options), options.out === undefined ? undefined : String(options.out)];
  if (feeds.length === 0 && !options.all) throw usageError('No stream is given. Name streams, or use --all.');
  if (feeds.length > 0 && options.all) throw usageError('--all cannot be combined with names of streams.');
  if (format === 'parquet' && out === undefined) throw usageError('--format parquet needs --out FOLDER.');
  if (out === '') throw usageError('--out is empty, expected a folder.');
  const isDecoded = options.decoded === true || format !== 'ndjson';
  for (const [flag, isGiven] of [
    ['--raw', options.raw],
    ['--full-report', options.fullReport],
  ] as const)
    if (isGiven && !isDecoded) throw usageError(`${flag} needs --decoded.`);
  const { from, to } = parseSpan(options, { from: 0, to: secondsMax }, nowSeconds);
  return {
    feeds,
    format,
    out,
    isDecoded,
    isRaw: options.raw === true,
    hasFullReport: options.fullReport === true,
    span: { from, to },
    times: { from: textOf(options.from), to: textOf(options.to) },
  };
};

const textOf = (option: unknown): string | null => (option === undefined ? null : String(option));

const parseFormat = ({ format, json }: RawOptions): FormatName => {
  if (json && format !== 'ndjson') throw usageError(`--json cannot be combined with --format ${format}.`);
  const known = formatNames.find((name) => name === format);
  if (known !== undefined) return known;
  throw usageError(`--format has the value "${format}", expected ${formatNames.join(', ')}.`);
};
