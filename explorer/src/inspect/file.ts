// Reads a file for inspection: text as it is, and anything else as the bytes of one report.
import { fullReportBytesMax } from '@sealpost/protocol';
import { formatCount } from '../ui/format.ts';

/** The largest file that is read: more than a thousand reports. */
export const fileBytesMax = 8_000_000;

export type FileText =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'wrong'; readonly problem: string; readonly advice: string };

/** The parts of a File that are used. */
export type InputFile = Pick<File, 'name' | 'size' | 'arrayBuffer'>;

const wrong = (problem: string, advice: string): FileText => ({ kind: 'wrong', problem, advice });

/** `2.4 MB`, `13 KB`. */
export const formatBytes = (bytes: number): string =>
  bytes < 1_000_000
    ? bytes < 1_000
      ? `${bytes} bytes`
      : `${formatCount(bytes / 1_000)} KB`
    : `${(bytes / 1_000_000).toFixed(1)} MB`;

/** Reads a file. Does not reject. */
export async function readInputFile(file: InputFile): Promise<FileText> {
  if (file.size > fileBytesMax)
    return wrong(
      `${file.name} is too large: ${formatBytes(file.size)}. This page reads up to ${formatBytes(fileBytesMax)}.`,
      'Open a part of it, for example its first 1,000 lines.',
    );
  try {
    return readBytes(file.name, new Uint8Array(await file.arrayBuffer()));
  } catch {
    return wrong(`${file.name} could not be read.`, 'If it is a folder, open its files one by one.');
  }
}

/** How files begin that have reports in a form that this page does not read. */
const otherForms: readonly (readonly [begin: string, form: string, advice: string])[] = [
  ['1f8b', 'compressed (gzip)', 'Decompress it first.'],
  ['28b52ffd', 'compressed (zstd)', 'Decompress it first.'],
  ['504b0304', 'a ZIP archive', 'Unpack it first.'],
  ['50415231', 'a Parquet file', 'Export the reports as NDJSON: sealpost export --format ndjson.'],
];

const toHex = (bytes: Uint8Array): string => [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('');

const readBytes = (name: string, bytes: Uint8Array): FileText => {
  if (bytes.length === 0) return wrong(`${name} is empty.`, 'Open a file with a report.');
  const begin = toHex(bytes.subarray(0, 4));
  const other = otherForms.find(([magic]) => begin.startsWith(magic));
  if (other !== undefined) return wrong(`${name} is ${other[1]}.`, other[2]);
  const text = textOf(bytes, begin);
  if (text !== undefined) return { kind: 'text', text };
  if (bytes.length > fullReportBytesMax)
    return wrong(
      `${name} is not text, and too long for the bytes of a report: ${formatCount(bytes.length)}, at most ${formatCount(fullReportBytesMax)}.`,
      'Open a file of JSON, of one JSON report per line, of hex, or of the bytes of one report.',
    );
  return { kind: 'text', text: `0x${toHex(bytes)}` };
};

/** The bytes as text; undefined if they are none. Some shells write UTF-16, with a mark at the beginning. */
const textOf = (bytes: Uint8Array, begin: string): string | undefined => {
  const encoding = begin.startsWith('fffe') ? 'utf-16le' : begin.startsWith('feff') ? 'utf-16be' : 'utf-8';
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what makes it binary
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? undefined : text;
  } catch {
    return undefined; // not of this encoding
  }
};
