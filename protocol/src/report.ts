// Owns the bytes of a report: the full report (context, body, signatures) and its body, encoded and decoded (D17, D18).
// ox does the ABI; this file adds what ABI decoders leave out: one byte sequence per value, nothing else is accepted.
// Who signed it is report-signature.ts.
import * as AbiParameters from 'ox/AbiParameters';
import * as Bytes from 'ox/Bytes';
import type * as Hex from 'ox/Hex';
import { type FeedId, schemaVersionOf, type TimeResolution, timeResolutionOf } from './feed-id.ts';
import { type Field, isSchemaVersion, type ReportBody, reportSchemas, type SchemaVersion } from './report-schemas.ts';

/** Why bytes are not a report. */
export type ReportFormatReason = 'malformed_hex' | 'malformed_envelope' | 'malformed_body' | 'unsupported_schema';

/** Bytes that are not a well-formed report. */
export class ReportFormatError extends Error {
  override readonly name = 'ReportFormatError';
  readonly reason: ReportFormatReason;

  constructor(reason: ReportFormatReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.reason = reason;
  }
}

/** One signature: r and s as 32-byte hex, v the recovery id, which must be 0 or 1 to verify. */
export type Signature = { readonly r: Hex.Hex; readonly s: Hex.Hex; readonly v: number };

/** A full report taken apart; `body` is still ABI-encoded because its bytes are what was signed. */
export type FullReport = {
  readonly context: { readonly configDigest: Hex.Hex; readonly epochAndRound: Hex.Hex; readonly extraHash: Hex.Hex };
  readonly body: Hex.Hex;
  readonly signatures: readonly Signature[];
};

/** Larger than any report can be: 31 signatures and the longest schema take 2,752 bytes. */
export const fullReportBytesMax = 4_096;

const wordBytes = 32;
const envelopeHeadWords = 7;
const signaturesMax = 32; // vs holds one byte each

/** The tuple that a full report is the ABI encoding of. */
export const envelopeParameters = [
  { type: 'bytes32[3]' },
  { type: 'bytes' },
  { type: 'bytes32[]' },
  { type: 'bytes32[]' },
  { type: 'bytes32' },
] as const;

/** The values of that tuple, in order. */
export const toEnvelopeValues = ({ context, body, signatures }: FullReport) => {
  const vs = signatures.map(({ v }) => v.toString(16).padStart(2, '0')).join('');
  return [
    [context.configDigest, context.epochAndRound, context.extraHash],
    body,
    signatures.map(({ r }) => r),
    signatures.map(({ s }) => s),
    `0x${vs.padEnd(wordBytes * 2, '0')}`,
  ] as const;
};

/** Joins context, body and signatures into `fullReport`, lower-case hex. */
export const encodeFullReport = (report: FullReport): Hex.Hex =>
  AbiParameters.encode(envelopeParameters, toEnvelopeValues(report));

/** Takes `fullReport` apart. Anything but the one canonical encoding is refused. */
export const decodeFullReport = (fullReport: string): FullReport => {
  const bytes = parseHexBytes(fullReport);
  try {
    const [context, body, rs, ss, vs] = AbiParameters.decode(envelopeParameters, bytes);
    checkEnvelopeLayout(bytes, (body.length - 2) / 2, rs.length, ss.length);
    const vAt = (i: number) => Number.parseInt(vs.slice(2 + i * 2, 4 + i * 2), 16);
    if (/[^0]/.test(vs.slice(2 + rs.length * 2))) throw envelopeError('vs has bytes beyond its signatures');
    return {
      context: { configDigest: context[0], epochAndRound: context[1], extraHash: context[2] },
      body,
      signatures: rs.map((r, i) => ({ r, s: ss[i] as Hex.Hex, v: vAt(i) })), // lengths are equal, at most 32
    };
  } catch (cause) {
    if (cause instanceof ReportFormatError) throw cause;
    throw new ReportFormatError('malformed_envelope', 'fullReport is cut short or not an ABI-encoded report.', {
      cause,
    });
  }
};

const parseHexBytes = (fullReport: string): Uint8Array => {
  if (fullReport.length > 2 + fullReportBytesMax * 2) {
    throw new ReportFormatError('malformed_hex', `fullReport is longer than ${fullReportBytesMax} bytes.`);
  }
  try {
    if (fullReport.startsWith('0x') && fullReport.length % 2 === 0) return Bytes.fromHex(fullReport as Hex.Hex); // throws on other characters
  } catch (cause) {
    throw new ReportFormatError('malformed_hex', 'fullReport has characters that are not hex digits.', { cause });
  }
  throw new ReportFormatError('malformed_hex', 'fullReport must be 0x and an even number of hex digits.');
};

const envelopeError = (what: string) =>
  new ReportFormatError('malformed_envelope', `fullReport is not canonically encoded: ${what}.`);

// ABI decoders follow any offset and ignore what lies between: without this check one signed report has many encodings,
// and a store that keys by bytes can be filled with copies.
const checkEnvelopeLayout = (bytes: Uint8Array, bodyBytes: number, rsCount: number, ssCount: number): void => {
  if (rsCount !== ssCount || rsCount > signaturesMax)
    throw envelopeError(`${rsCount} r values and ${ssCount} s values`);
  const bodyAt = envelopeHeadWords * wordBytes;
  const rsAt = bodyAt + wordBytes + Math.ceil(bodyBytes / wordBytes) * wordBytes;
  const ssAt = rsAt + wordBytes * (1 + rsCount);
  if (bytes.length !== ssAt + wordBytes * (1 + ssCount)) throw envelopeError('bytes are missing or left over');
  for (const [word, expected] of [
    [3, bodyAt],
    [4, rsAt],
    [5, ssAt],
  ] as const) {
    if (readOffset(bytes, word) !== expected) throw envelopeError(`offset ${word} points elsewhere`);
  }
  const padding = bytes.subarray(bodyAt + wordBytes + bodyBytes, rsAt);
  if (padding.some((byte) => byte !== 0)) throw envelopeError('the padding after the body is not zero');
};

// Low four bytes: ox has already followed the offset, so it is inside the 4 KB and the high bytes are zero.
const readOffset = (bytes: Uint8Array, word: number): number =>
  new DataView(bytes.buffer, bytes.byteOffset).getUint32((word + 1) * wordBytes - 4);

type AbiField = { readonly name: string; readonly type: string };

const abiFieldsOf = (fields: readonly Field[], resolution: TimeResolution): readonly AbiField[] =>
  fields.map(({ name, type }) => ({
    name,
    type: type === 'time' ? (resolution === 'seconds' ? 'uint32' : 'uint64') : type,
  }));

const abiFieldsByResolution = (resolution: TimeResolution) =>
  Object.fromEntries(
    Object.entries(reportSchemas).map(([version, { fields }]) => [version, abiFieldsOf(fields, resolution)]),
  ) as Record<SchemaVersion, readonly AbiField[]>; // keyed by the table itself

const abiFields = {
  seconds: abiFieldsByResolution('seconds'),
  milliseconds: abiFieldsByResolution('milliseconds'),
};

const layoutOf = (feedId: FeedId): { version: SchemaVersion; resolution: TimeResolution } => {
  const version = schemaVersionOf(feedId);
  const resolution = timeResolutionOf(feedId);
  if (isSchemaVersion(version) && resolution !== undefined) return { version, resolution };
  const what = resolution === undefined ? `time resolution ${feedId[2]}` : `schema version ${version}`;
  throw new ReportFormatError('unsupported_schema', `The feed id names ${what}, which this release does not know.`);
};

/** Encodes a body by the schema of its own feed id; a value that its field cannot hold is refused. */
export const encodeReportBody = (body: ReportBody): Hex.Hex => {
  const { version, resolution } = layoutOf(body.feedId);
  if (version !== body.version) {
    throw new ReportFormatError(
      'malformed_body',
      `A version ${body.version} body has a feed id of version ${version}.`,
    );
  }
  const fields = abiFields[resolution][version];
  const named = body as unknown as Record<string, string | number | bigint>; // looped over by the table's names
  try {
    const values = fields.map(({ name, type }) => (type === 'uint64' ? BigInt(named[name] as bigint) : named[name]));
    return AbiParameters.encode(fields, values);
  } catch (cause) {
    throw new ReportFormatError('malformed_body', 'A field of the body is missing or out of range.', { cause });
  }
};

/** Decodes a body by the schema of the feed id it begins with. */
export const decodeReportBody = (body: Hex.Hex): ReportBody => {
  const { version, resolution } = layoutOf(body.slice(0, 2 + wordBytes * 2) as FeedId); // a short slice names no known schema or fails the length check
  const schema = reportSchemas[version];
  if (body.length !== 2 + schema.fields.length * wordBytes * 2) {
    throw new ReportFormatError('malformed_body', `A version ${version} body has ${schema.fields.length} words.`);
  }
  const fields = abiFields[resolution][version];
  const values = decodeFields(fields, body);
  schema.fields.forEach(({ name, type }: Field, i) => {
    if (type === 'time') values[name] = Number(values[name]);
    checkRange(values[name] as number | bigint | Hex.Hex, fields[i] as AbiField); // same table, same index
  });
  return { version, ...values } as ReportBody; // names and types come from the table that the type is derived from
};

// ox throws its own error on a 32-byte number that no double holds.
const decodeFields = (fields: readonly AbiField[], body: Hex.Hex): Record<string, unknown> => {
  try {
    return AbiParameters.decode(fields, body, { as: 'Object' });
  } catch (cause) {
    throw new ReportFormatError('malformed_body', 'A field of the body is out of range.', { cause });
  }
};

// The largest magnitude of each width, so that words with dirty high bytes, which ox reads as larger numbers, are refused.
const unsignedMax = { uint32: 2 ** 32 - 1, uint64: 2n ** 64n - 1n, uint192: 2n ** 192n - 1n } as const;
const int192Max = 2n ** 191n - 1n;

const checkRange = (value: number | bigint | Hex.Hex, { name, type }: AbiField): void => {
  if (type === 'bytes32') return;
  const inRange =
    type === 'int192'
      ? (value as bigint) >= -int192Max - 1n && (value as bigint) <= int192Max
      : (value as bigint) <= unsignedMax[type as keyof typeof unsignedMax];
  if (inRange && (typeof value !== 'number' || Number.isSafeInteger(value))) return;
  throw new ReportFormatError('malformed_body', `${name} is out of range for ${type}.`);
};

/** The span a report's price applies to, both ends inclusive, in milliseconds whatever the body's resolution. */
export type ReportWindow = {
  readonly validFromMs: number;
  readonly observationsMs: number;
  /** Absent in version 1, which has no expiry. */
  readonly expiresAtMs: number | undefined;
};

/** The window of a body; version 1 has no validFrom of its own, so both ends are its observation. */
export const windowOf = (body: ReportBody): ReportWindow => {
  const unitMs = timeResolutionOf(body.feedId) === 'milliseconds' ? 1 : 1_000;
  const observationsMs = body.observationsTimestamp * unitMs;
  if (body.version === 1) return { validFromMs: observationsMs, observationsMs, expiresAtMs: undefined };
  return { validFromMs: body.validFromTimestamp * unitMs, observationsMs, expiresAtMs: body.expiresAt * unitMs };
};

/** The one price to show for a body, 18 decimals, as the table's headline names it. */
export const headlinePriceOf = (body: ReportBody): bigint => {
  const { price } = reportSchemas[body.version].headline;
  return (body as unknown as Readonly<Record<string, bigint>>)[price] as bigint; // a test holds that the headline names a field
};
