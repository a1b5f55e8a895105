// The map of a full report's bytes: each byte belongs to exactly one segment, and each segment says what it is.
import { envelopeHeadWords, type FullReport, wordBytes } from '@sealpost/protocol';
import type { FieldLine } from './report-fields.ts';

/** `layout`: offsets and lengths of the ABI encoding. */
export type BytesPart = 'context' | 'layout' | 'body' | 'signatures';

export type Segment = {
  readonly id: string;
  /** Segments with the same link are highlighted together: the r, s and v of a signature share one. */
  readonly link: string;
  readonly part: BytesPart;
  readonly name: string;
  readonly type: string;
  readonly about: string;
  /** In bytes. */
  readonly offset: number;
  readonly length: number;
};

/** Names of parts, as labels. */
export const partTitles: Readonly<Record<BytesPart, string>> = {
  context: 'Context',
  layout: 'Layout',
  body: 'Body',
  signatures: 'Signatures',
};

/** The link of a field of the body, and of a word of the context. */
export const fieldLink = (name: string): string => `body ${name}`;
export const contextLink = (name: string): string => `context ${name}`;

/** The link of a signature, counted from 0. */
export const signatureLink = (index: number): string => `signature ${index}`;

export const contextTexts = {
  configDigest: 'Identifies the signer set: who may sign, and how many must.',
  epochAndRound: 'The number of the round in which the oracles agreed on the report.',
  extraHash: 'Identifies the oracle network and the version of its software.',
} as const satisfies Record<keyof FullReport['context'], string>;

export const contextNames = Object.keys(contextTexts) as readonly (keyof typeof contextTexts)[]; // keys of its own

/** A segment without its offset, which is the sum of the lengths before it. */
type Piece = Omit<Segment, 'offset' | 'link'> & { readonly link?: string };

const layoutPiece = (id: string, name: string, about: string): Piece => ({
  id,
  part: 'layout',
  name,
  type: 'uint256',
  about,
  length: wordBytes,
});

const padding = (id: string, part: BytesPart, length: number, about: string): readonly Piece[] =>
  length === 0 ? [] : [{ id, part, name: 'padding', type: 'zeros', about, length }];

const contextPieces = (): readonly Piece[] =>
  contextNames.map((name) => ({
    id: contextLink(name), // the keys of the table itself
    part: 'context',
    name,
    type: 'bytes32',
    about: contextTexts[name],
    length: wordBytes,
  }));

const vsPieces = (count: number): readonly Piece[] => [
  ...Array.from(
    { length: count },
    (_, i): Piece => ({
      id: `v ${i}`,
      link: signatureLink(i),
      part: 'signatures',
      name: `v ${i + 1}`,
      type: 'uint8',
      about: `Recovery bit of signature ${i + 1}: which of two possible keys signed, 0 or 1.`,
      length: 1,
    }),
  ),
  ...padding('vs padding', 'signatures', wordBytes - count, 'One byte per signature; the rest are zero.'),
];

/** One segment per field that is known, and one per word after them; of a malformed body, the feed ID is known. */
const bodyPieces = (bodyLength: number, fields: readonly FieldLine[] | undefined): readonly Piece[] => {
  const words = Math.ceil(bodyLength / wordBytes);
  const pieces = Array.from({ length: words }, (_, i): Piece => {
    const length = Math.min(wordBytes, bodyLength - i * wordBytes);
    const field = fields?.[i];
    if (field !== undefined)
      return {
        id: fieldLink(field.name),
        part: 'body',
        name: field.name,
        type: field.type,
        about: field.about,
        length,
      };
    const [name, about] =
      i === 0
        ? ['feedId', 'The report’s stream. Every body starts with it.']
        : [`word ${i + 1}`, `Word ${i + 1} of the body. This page does not know its field.`];
    return { id: fieldLink(name), part: 'body', name, type: 'bytes32', about, length };
  });
  return [
    ...pieces,
    ...padding('body padding', 'layout', words * wordBytes - bodyLength, 'Fills the last word of the body.'),
  ];
};

const halfPieces = (half: 'r' | 's', count: number): readonly Piece[] => [
  layoutPiece(
    `${half}s length`,
    `length of ${half}s`,
    `The number of ${half} values that follow: ${count}, one per signature.`,
  ),
  ...Array.from(
    { length: count },
    (_, i): Piece => ({
      id: `${half} ${i}`,
      link: signatureLink(i),
      part: 'signatures',
      name: `${half} ${i + 1}`,
      type: 'bytes32',
      about: `The ${half} value of signature ${i + 1}, its ${half === 'r' ? 'first' : 'second'} half.`,
      length: wordBytes,
    }),
  ),
];

/** Every segment of a full report, in order and without gaps. `fields`: those that are known; undefined if the body is malformed. */
export function mapReportBytes(
  { body, signatures: { length: count } }: FullReport,
  fields: readonly FieldLine[] | undefined,
): readonly Segment[] {
  const bodyLength = (body.length - 2) / 2;
  const rsAt = (envelopeHeadWords + 1 + Math.ceil(bodyLength / wordBytes)) * wordBytes;
  const ssAt = rsAt + (1 + count) * wordBytes;
  const pieces = [
    ...contextPieces(),
    layoutPiece(
      'body offset',
      'offset of the body',
      `The body starts at byte ${envelopeHeadWords * wordBytes}, with its length.`,
    ),
    layoutPiece('rs offset', 'offset of rs', `The r values start at byte ${rsAt}, with their number.`),
    layoutPiece('ss offset', 'offset of ss', `The s values start at byte ${ssAt}, with their number.`),
    ...vsPieces(count),
    layoutPiece('body length', 'length of the body', `The body has ${bodyLength} bytes.`),
    ...bodyPieces(bodyLength, fields),
    ...halfPieces('r', count),
    ...halfPieces('s', count),
  ];
  let offset = 0;
  return pieces.map((piece) => {
    const segment = { link: piece.id, ...piece, offset };
    offset += piece.length;
    return segment;
  });
}

/** Segments by word: one word is one line of the dump. No segment spans two words. */
export function wordsOf(segments: readonly Segment[]): readonly (readonly Segment[])[] {
  const words: Segment[][] = [];
  for (const segment of segments) {
    const index = Math.floor(segment.offset / wordBytes);
    const word = words[index];
    if (word === undefined) words[index] = [segment];
    else word.push(segment);
  }
  return words;
}

/** The hex digits of a segment. */
export const digitsOf = (fullReport: string, { offset, length }: Pick<Segment, 'offset' | 'length'>): string =>
  fullReport.slice(2 + offset * 2, 2 + (offset + length) * 2);

/** The same report with the last bit of a field flipped, so that its signatures no longer match. */
export function alterField(fullReport: string, { offset, length }: Pick<Segment, 'offset' | 'length'>): string {
  const at = 1 + (offset + length) * 2;
  const digit = (Number.parseInt(fullReport.slice(at, at + 1), 16) ^ 1).toString(16);
  return `${fullReport.slice(0, at)}${digit}${fullReport.slice(at + 1)}`;
}
