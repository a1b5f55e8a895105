// Corrects one flipped bit of a run by trying each: the index is right when its checksum matches, a report when its checksum matches and its quorum
// verifies. It accepts nothing unproven (D131).
import { decodeFullReport, type FeedId, ReportFormatError, type SignerSets, verifyReport } from '@sealpost/protocol';
import { CorruptRecordError, type Window } from '../store.ts';
import {
  type Block,
  type BlockReport,
  blockIndexBytes,
  claimedContents,
  lengthPlaces,
  openBlock,
  reportByteRange,
} from './report-block.ts';
import { contentsOf, toHex } from './report-contents.ts';

const isSigned = (fullReport: Uint8Array, signerSets: SignerSets): boolean => {
  try {
    return verifyReport(decodeFullReport(toHex(fullReport)), signerSets).ok;
  } catch (error) {
    if (error instanceof ReportFormatError) return false;
    throw error;
  }
};

/** What can be read; undefined where bytes are damaged. */
export const attempt = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (error) {
    if (error instanceof CorruptRecordError || error instanceof RangeError) return undefined;
    throw error;
  }
};

/** Flips each bit of a range until `isRight`; leaves it flipped then, and returns true. */
const correctBit = (bytes: Buffer, from: number, to: number, isRight: () => boolean): boolean => {
  for (let at = from; at < to; at++) {
    for (let bit = 1; bit < 256; bit <<= 1) {
      bytes[at] = (bytes[at] as number) ^ bit; // within bounds
      if (isRight()) return true;
      bytes[at] = (bytes[at] as number) ^ bit; // within its bytes
    }
  }
  return false;
};

/** The run of a record that does not open: of one of these streams, or with one bit of its index corrected. */
export const openCorrected = (
  value: Buffer,
  streams: readonly number[],
): { readonly stream: number; readonly block: Block; readonly bytes: Buffer } | undefined => {
  for (const stream of streams) {
    const block = attempt(() => openBlock(stream, value));
    if (block !== undefined) return { stream, block, bytes: value };
  }
  const [stream] = streams;
  if (stream === undefined) return undefined;
  const bytes = Buffer.from(value);
  const end = Math.min(bytes.length, blockIndexBytes(bytes));
  if (!correctBit(bytes, 0, end, () => attempt(() => openBlock(stream, bytes)) !== undefined)) return undefined;
  return { stream, block: openBlock(stream, bytes), bytes };
};

/** What a run holds whose index is damaged: what its lengths say or, if they do not add up, with one bit of them corrected. Nothing if neither fits. */
export const countDamaged = (stream: number, value: Buffer): ReturnType<typeof claimedContents> => {
  const claimed = claimedContents(value);
  if (claimed.reports > 0 || value.length < 6) return claimed;
  const bytes = Buffer.from(value);
  const addsUp = (): boolean => (attempt(() => claimedContents(bytes))?.reports ?? 0) > 0;
  const isRight = (): boolean => addsUp() && attempt(() => openBlock(stream, bytes)) !== undefined;
  const isCorrected = lengthPlaces(value).some((at) => correctBit(bytes, at, at + 2, isRight));
  return isCorrected ? claimedContents(bytes) : claimed;
};

/** What `read` finds of a report once one bit of a range is flipped in place, its checksum is right and its quorum signed it; undefined without such a bit. */
export const correctReport = <T extends { readonly fullReport: Uint8Array }>(
  bytes: Buffer,
  [from, to]: readonly [number, number],
  read: () => T | undefined,
  { feedId, signerSets }: { readonly feedId: FeedId; readonly signerSets: SignerSets },
): T | undefined => {
  const isRight = (): boolean => {
    const report = read();
    return (
      report !== undefined &&
      contentsOf(report.fullReport)?.feedId === feedId &&
      isSigned(report.fullReport, signerSets)
    );
  };
  return correctBit(bytes, from, to, isRight) ? read() : undefined;
};

/** The reports of a run that can be proven, and the windows of the others. */
export const salvageRun = (
  stream: number,
  feedId: FeedId,
  value: Buffer,
  signerSets: SignerSets,
): { readonly reports: readonly BlockReport[]; readonly lost: readonly Window[]; readonly corrected: number } => {
  const bytes = Buffer.from(value);
  const count = openBlock(stream, bytes).count;
  const reports: BlockReport[] = [];
  const lost: Window[] = [];
  let corrected = 0;
  for (let i = 0; i < count; i++) {
    // Opened again: the first report, which the others are packed against, may just have been corrected.
    const read = (): BlockReport | undefined => attempt(() => openBlock(stream, bytes).report(i));
    const intact = read();
    if (intact !== undefined) {
      reports.push(intact);
      continue;
    }
    const isHopeless = lost.length > 0 && reports.length === 0; // without the first, none of the others can be unpacked
    const found = isHopeless
      ? undefined
      : correctReport(bytes, reportByteRange(bytes, i), read, { feedId, signerSets });
    if (found === undefined) lost.push(openBlock(stream, bytes).window(i));
    else {
      reports.push(found);
      corrected += 1;
    }
  }
  return { reports, lost, corrected };
};
