// Encodes and decodes full reports (context, body, signatures) and their bodies (D17, D18). Decoding accepts only what encoding
// produces, which ABI decoders do not guarantee. report-signature.ts verifies signatures.
import { schemaVersionOf, type TimeResolution, timeResolutionOf } from './feed-id.ts';
import {
  arrayTail,
  bytesTail,
  encodeTuple,
  encodeWord,
  hexWord,
  isHexBytes,
  type WordType,
} from './primitives/abi-words.ts';
import type { Hex } from './primitives/hex-bytes.ts';
import {
  type Field,
  type FieldType,
  fieldsOf,
  headFields,
  isSchemaVersion,
  type ReportBody,
  type ReportHead,
  reportSchemas,
} from './report-schemas.ts';

/** Why bytes are not a report; `unknown_schema`: they are one, but this release cannot decode its fields. */
export type ReportFormatReason = 'malformed_hex' | 'malformed_envelope' | 'malformed_body' | 'unknown_schema';

/** Bytes that are not a well-formed report, or not one whose fields are known. */
export class ReportFormatError extends Error {
  override readonly name = 'ReportFormatError';
  readonly reason: ReportFormatReason;

  constructor(reason: ReportFormatReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** One signature: r and s as 32-byte hex, v the recovery id, which must be 0 or 1 to verify. */
export type Signature = { readonly r: Hex; readonly s: Hex; readonly v: number };

/** A decoded full report; `body` stays ABI-encoded, because its bytes are what was signed. */
export type FullReport = {
  readonly context: { readonly configDigest: Hex; readonly epochAndRound: Hex; readonly extraHash: Hex };
  readonly body: Hex;
  readonly signatures: readonly Signature[];
};

/** Larger than any known report: 31 signatures and the longest schema take 2,848 bytes. */
export const fullReportBytesMax = 4_096;

/** Bytes of an ABI word. */
export const wordBytes = 32;
const wordDigits = 64;
/** Words of a full report before the length of its body. */
export const envelopeHeadWords = 7;
/** Signatures that fit into a full report: vs has one byte each. */
export const signaturesMax = 32;

/** Encodes context, body and signatures as `fullReport`, lower-case hex. Throws on values that do not fit. */
export const encodeFullReport = (report: FullReport): Hex => encodeEnvelope(report);

/**
 * ABI-encodes the tuple (bytes32[3] context, bytes body, bytes32[] rs, bytes32[] ss, bytes32 vs). `appended` adds elements of
 * type `bytes` after these five.
 */
export function encodeEnvelope({ context, body, signatures }: FullReport, appended: readonly Hex[] = []): Hex {
  const wordOf = (name: string, value: string): string => {
    const word = hexWord(value);
    if (word === undefined) throw unencodable(`${name} is not 0x and 64 hex digits`);
    return word;
  };
  if (signatures.length > signaturesMax) throw unencodable(`it has ${signatures.length} signatures`);
  if (!isHexBytes(body)) throw unencodable('its body is not 0x and an even number of hex digits');
  const vs = signatures.map(({ v }, i) => {
    if (!Number.isInteger(v) || v < 0 || v > 255) throw unencodable(`v of signature ${i} is not one byte`);
    return v.toString(16).padStart(2, '0');
  });
  return encodeTuple([
    wordOf('configDigest', context.configDigest),
    wordOf('epochAndRound', context.epochAndRound),
    wordOf('extraHash', context.extraHash),
    bytesTail(body),
    arrayTail(signatures.map(({ r }, i) => wordOf(`r of signature ${i}`, r))),
    arrayTail(signatures.map(({ s }, i) => wordOf(`s of signature ${i}`, s))),
    vs.join('').padEnd(wordDigits, '0'),
    ...appended.map(bytesTail),
  ]);
}

const unencodable = (what: string) =>
  new ReportFormatError('malformed_envelope', `The report cannot be encoded: ${what}.`);

/** Decodes `fullReport`. Throws on anything but the canonical encoding. */
export function decodeFullReport(fullReport: string): FullReport {
  const hex = parseHex(fullReport);
  const word = (i: number): string => hex.slice(2 + i * wordDigits, 2 + (i + 1) * wordDigits);
  const { body, rsAt, ssAt, count } = readLayout(hex, word);
  const vs = word(envelopeHeadWords - 1);
  if (/[^0]/.test(vs.slice(count * 2))) throw envelopeError('vs has bytes beyond its signatures');
  return {
    context: { configDigest: `0x${word(0)}`, epochAndRound: `0x${word(1)}`, extraHash: `0x${word(2)}` },
    body,
    signatures: Array.from({ length: count }, (_, i) => ({
      r: `0x${word(rsAt + 1 + i)}`,
      s: `0x${word(ssAt + 1 + i)}`,
      v: Number.parseInt(vs.slice(i * 2, i * 2 + 2), 16),
    })),
  };
}

const lowerCaseHex = /^0x(?:[0-9a-f]{2})*$/;

const parseHex = (fullReport: string): string => {
  if (fullReport.length > 2 + fullReportBytesMax * 2) {
    throw new ReportFormatError('malformed_hex', `fullReport is longer than ${fullReportBytesMax} bytes.`);
  }
  if (lowerCaseHex.test(fullReport)) return fullReport;
  const hex = fullReport.startsWith('0x') ? fullReport.toLowerCase() : fullReport;
  if (lowerCaseHex.test(hex)) return hex;
  throw new ReportFormatError('malformed_hex', 'fullReport must be 0x and an even number of hex digits.');
};

const envelopeError = (what: string) =>
  new ReportFormatError('malformed_envelope', `fullReport is truncated or not canonically encoded: ${what}.`);

// A canonical report has a fixed layout, so decoding is slicing: 3 µs instead of 27. ABI decoders follow any offset and ignore bytes in
// between, so that one signed report would have many encodings.
const readLayout = (hex: string, word: (i: number) => string) => {
  const words = (hex.length - 2) / wordDigits;
  const lengthAt = (i: number): number => {
    const length = smallNumber(word(i));
    if (length === undefined) throw envelopeError(`word ${i} is not a length`);
    return length;
  };
  const bodyBytes = lengthAt(envelopeHeadWords);
  const bodyAt = 2 + (envelopeHeadWords + 1) * wordDigits;
  const rsAt = envelopeHeadWords + 1 + Math.ceil(bodyBytes / wordBytes);
  const count = lengthAt(rsAt);
  const ssAt = rsAt + 1 + count;
  if (count > signaturesMax || lengthAt(ssAt) !== count)
    throw envelopeError('the numbers of r and s values differ, or are too large');
  if (words !== ssAt + 1 + count) throw envelopeError('bytes are missing or left over');
  const offsets = [envelopeHeadWords, rsAt, ssAt].map((at) => at * wordBytes);
  offsets.forEach((expected, i) => {
    if (smallNumber(word(3 + i)) !== expected) throw envelopeError(`offset ${i} points elsewhere`);
  });
  const bodyEnd = bodyAt + bodyBytes * 2;
  if (/[^0]/.test(hex.slice(bodyEnd, 2 + rsAt * wordDigits)))
    throw envelopeError('the padding after the body is not zero');
  return { body: `0x${hex.slice(bodyAt, bodyEnd)}` as const, rsAt, ssAt, count };
};

const zeros = '0'.repeat(wordDigits);

/** A word as a number of at most four bytes; undefined if it is larger, or not a whole word. */
const smallNumber = (word: string): number | undefined =>
  word.length === wordDigits && word.startsWith(zeros.slice(0, wordDigits - 8))
    ? Number.parseInt(word.slice(-8), 16)
    : undefined;

const wordTypeOf = (type: FieldType, resolution: TimeResolution): WordType =>
  type === 'time' ? (resolution === 'seconds' ? 'uint32' : 'time64') : type;

const resolutionOf = (feedId: string): TimeResolution => {
  const resolution = timeResolutionOf(feedId);
  if (resolution !== undefined) return resolution;
  throw malformedBody(`The feed ID names time resolution ${feedId[2]}, which is not defined.`);
};

const malformedBody = (message: string) => new ReportFormatError('malformed_body', message);
const unknownSchema = (message: string) => new ReportFormatError('unknown_schema', message);
const unknownVersion = (version: number): string =>
  `The feed ID names schema version ${version}, which this release does not know.`;

/** Encodes a body by the schema of its feed ID. Throws on values that do not fit their field. */
export function encodeReportBody(body: ReportBody): Hex {
  const version = schemaVersionOf(body.feedId);
  const resolution = resolutionOf(body.feedId);
  if (!isSchemaVersion(version)) throw unknownSchema(unknownVersion(version));
  if (version !== body.version)
    throw malformedBody(`A version ${body.version} body has a feed ID of version ${version}.`);
  return `0x${encodeFields(body, resolution)}`;
}

/** A body with other values in the fields that were read of it. Bytes that were not read stay. */
export function withFields(body: Hex, fields: ReportBody | ReportHead): Hex {
  const digits = encodeFields(fields, resolutionOf(fields.feedId));
  return `0x${digits}${body.slice(2 + digits.length)}`;
}

const mistakeOf = (type: Field['type'], value: unknown): string => {
  const expectedType = ['uint64', 'uint192', 'int192'].includes(type) ? 'bigint' : 'number';
  if (type === 'bytes32' || value === undefined || typeof value === expectedType) return 'is missing or out of range.';
  return `is a ${typeof value}, but must be a ${expectedType}.`;
};

const encodeFields = (body: ReportBody | ReportHead, resolution: TimeResolution): string => {
  const named = body as unknown as Record<string, unknown>; // looped over by the table's names
  const words = fieldsOf(body).map(({ name, type }) => {
    const word = encodeWord(wordTypeOf(type, resolution), named[name]);
    if (word === undefined) throw malformedBody(`${name} ${mistakeOf(type, named[name])}`);
    return word;
  });
  return words.join('');
};

/** The feed ID that every body starts with, whatever its schema; not validated. */
export const feedIdOf = (body: string): string => body.slice(0, 2 + wordDigits);

/** Decodes a body by the schema of the feed ID that it starts with. Throws `unknown_schema` if it has another layout. */
export function decodeReportBody(body: Hex): ReportBody {
  const read = readReportBody(body);
  if (read.version === undefined) throw unknownSchema(read.problem);
  return read;
}

/**
 * Reads a body: all fields if it has the layout of its feed ID's schema, else those of its head, which every schema since 2 has. The one place that decides
 * whether a report can be decoded (D246). Throws `malformed_body` if not even the head can be read.
 */
export function readReportBody(body: Hex): ReportBody | ReportHead {
  if (body.length < 2 + headFields.length * wordDigits)
    throw malformedBody(`A body has at least ${headFields.length} words.`);
  const version = schemaVersionOf(body);
  const resolution = resolutionOf(body);
  const known = readByVersion(body, version, resolution);
  if (known.values !== undefined) return { version, ...known.values } as unknown as ReportBody; // types derive from the table
  if (version === 1) throw malformedBody(known.problem); // the only version without this head
  const head = readFields(body, headFields, resolution);
  if (head.values === undefined) throw malformedBody(head.problem);
  return { version: undefined, problem: known.problem, ...head.values } as unknown as ReportHead; // as above
}

const readByVersion = (body: Hex, version: number, resolution: TimeResolution): FieldsRead => {
  if (!isSchemaVersion(version)) return { problem: unknownVersion(version) };
  const { fields } = reportSchemas[version];
  if (body.length === 2 + fields.length * wordDigits) return readFields(body, fields, resolution);
  return { problem: `A version ${version} body has ${fields.length} words.` };
};

type FieldsRead =
  | { readonly values: Readonly<Record<string, unknown>>; readonly problem?: never }
  | { readonly values?: never; readonly problem: string };

const readFields = (body: Hex, fields: readonly Field[], resolution: TimeResolution): FieldsRead => {
  const values: Record<string, unknown> = {};
  for (const [i, { name, type }] of fields.entries()) {
    const value = readers[type](body.slice(2 + i * wordDigits, 2 + (i + 1) * wordDigits), resolution);
    if (value === undefined) return { problem: `${name} is out of range for its type.` };
    values[name] = value;
  }
  return { values };
};

/** An unsigned word of `bits` bits; undefined if a higher bit is set. */
const unsigned = (word: string, bits: number): bigint | undefined => {
  const digits = bits / 4;
  return word.startsWith(zeros.slice(0, wordDigits - digits)) ? BigInt(`0x${word.slice(-digits)}`) : undefined;
};

const safeNumber = (value: bigint | undefined): number | undefined =>
  value !== undefined && value <= Number.MAX_SAFE_INTEGER ? Number(value) : undefined;

/** Decodes a word of each type; undefined if it does not fit. */
const readers: Readonly<Record<FieldType, (word: string, resolution: TimeResolution) => unknown>> = {
  bytes32: (word) => `0x${word}`,
  time: (word, resolution) => (resolution === 'seconds' ? smallNumber(word) : safeNumber(unsigned(word, 64))),
  uint32: smallNumber,
  uint64: (word) => unsigned(word, 64),
  uint192: (word) => unsigned(word, 192),
  // The sign fills the eight bytes above.
  int192: (word) => {
    const value = BigInt.asIntN(192, BigInt(`0x${word.slice(16)}`));
    return word.startsWith((value < 0n ? 'f' : '0').repeat(16)) ? value : undefined;
  },
};

/** When a report is valid, both ends included; always in milliseconds. */
export type ReportWindow = {
  readonly validFromMs: number;
  readonly observationsMs: number;
  /** Absent in version 1, which has no expiry. */
  readonly expiresAtMs: number | undefined;
};

/** The window of a body; version 1 has no validFrom, so both ends are its observation. */
export function windowOf(body: ReportBody | ReportHead): ReportWindow {
  const unitMs = timeResolutionOf(body.feedId) === 'milliseconds' ? 1 : 1_000;
  const observationsMs = body.observationsTimestamp * unitMs;
  if (body.version === 1) return { validFromMs: observationsMs, observationsMs, expiresAtMs: undefined };
  return { validFromMs: body.validFromTimestamp * unitMs, observationsMs, expiresAtMs: body.expiresAt * unitMs };
}

/** The main price of a body, 18 decimals, by the table's headline; undefined where only the head can be read. */
export function headlinePriceOf(body: ReportBody): bigint;
export function headlinePriceOf(body: ReportBody | ReportHead): bigint | undefined;
export function headlinePriceOf(body: ReportBody | ReportHead): bigint | undefined {
  if (body.version === undefined) return undefined;
  const { price } = reportSchemas[body.version].headline;
  return (body as unknown as Readonly<Record<string, bigint>>)[price] as bigint; // a test checks that the headline names a field
}
