// Compares a report with the signed one it was made from: which fields, signatures and bytes differ.
import { formatPrice } from '../format.ts';
import { contextLink, contextNames, digitsOf, fieldLink, type Segment } from './bytes.ts';
import type { ReportReading } from './reading.ts';
import type { FieldLine } from './report-fields.ts';
import { dateMaxMs } from './report-time.tsx';

/** A value that differs, in words. */
export type DifferentValue = {
  readonly name: string;
  /** The link of the field, context word or signature. */
  readonly link: string;
  readonly signed: string;
  readonly here: string;
};

export type Difference = {
  /** In the order of the table: body, context, then signatures and the rest. */
  readonly values: readonly DifferentValue[];
  /** By segment ID, the bytes that differ, counted from the segment's start. */
  readonly bytes: ReadonlyMap<string, ReadonlySet<number>>;
};

type FormatTime = (ms: number) => string;

/** Compares a report with a signed one. No values if they are the same. */
export const compareReports = (signed: ReportReading, here: ReportReading, formatTime: FormatTime): Difference => ({
  values: [
    ...differentFields(signed, here, formatTime),
    ...differentContext(signed, here),
    ...differentRest(signed, here),
  ],
  bytes: new Map(
    here.segments.flatMap((segment) => {
      const found = differentBytes(signed, here, segment);
      return found.size === 0 ? [] : [[segment.id, found] as const];
    }),
  ),
});

const segmentDigits = (report: ReportReading, id: string): string | undefined => {
  const segment = report.segments.find((one) => one.id === id);
  return segment && digitsOf(report.fullReport, segment);
};

const differentBytes = (signed: ReportReading, here: ReportReading, segment: Segment): ReadonlySet<number> => {
  const [theirs = '', own] = [segmentDigits(signed, segment.id), digitsOf(here.fullReport, segment)];
  const offsets = Array.from({ length: segment.length }, (_, i) => i);
  return new Set(offsets.filter((i) => theirs.slice(2 * i, 2 * i + 2) !== own.slice(2 * i, 2 * i + 2)));
};

const differentFields = (
  signed: ReportReading,
  here: ReportReading,
  formatTime: FormatTime,
): readonly DifferentValue[] => {
  if (signed.fields === undefined || here.fields === undefined) return [];
  const signedLines = new Map(signed.fields.map((line) => [line.name, line]));
  return here.fields.flatMap((line) => {
    const theirs = signedLines.get(line.name);
    if (theirs?.raw === line.raw) return [];
    return [{ name: line.name, link: fieldLink(line.name), ...textsOf(theirs, line, formatTime) }];
  });
};

const differentContext = (signed: ReportReading, here: ReportReading): readonly DifferentValue[] =>
  contextNames
    .filter((name) => signed.full.context[name] !== here.full.context[name])
    .map((name) => ({
      name,
      link: contextLink(name),
      signed: signed.full.context[name],
      here: here.full.context[name],
    }));

/** Signatures, and words of a body whose fields are not known: one entry for each link. */
const differentRest = (signed: ReportReading, here: ReportReading): readonly DifferentValue[] => {
  const compared = new Set((signed.fields && here.fields)?.map(({ name }) => fieldLink(name)));
  const others = here.segments.filter(({ part, link }) => part !== 'context' && !compared.has(link));
  const different = others.filter((segment) => differentBytes(signed, here, segment).size > 0);
  const first = different.filter(({ link }, i) => different.findIndex((one) => one.link === link) === i);
  return first.map((segment) => {
    const theirs = segmentDigits(signed, segment.id);
    return {
      name: segment.link.startsWith('signature ') ? `signature ${Number(segment.link.slice(10)) + 1}` : segment.name,
      link: segment.link,
      signed: theirs === undefined ? 'nothing' : `0x${theirs}`,
      here: `0x${digitsOf(here.fullReport, segment)}`,
    };
  });
};

/** The two values in words; as integers where the words are the same. */
const textsOf = (
  signed: FieldLine | undefined,
  here: FieldLine,
  formatTime: FormatTime,
): Pick<DifferentValue, 'signed' | 'here'> => {
  if (signed === undefined) return { signed: 'nothing', here: readingText(here, formatTime) };
  const texts = { signed: readingText(signed, formatTime), here: readingText(here, formatTime) };
  return texts.signed === texts.here ? { signed: signed.raw, here: here.raw } : texts;
};

/** A field's readable value as one text. */
const readingText = ({ reading, raw }: FieldLine, formatTime: FormatTime): string => {
  switch (reading.kind) {
    case 'decimal':
      return `${formatPrice(reading.value)} ${reading.of}`.trim();
    case 'time':
      return reading.ms > dateMaxMs || reading.fraction !== '' ? raw : formatTime(reading.ms);
    case 'words':
      return reading.text;
    case 'plain':
      return raw;
  }
};
