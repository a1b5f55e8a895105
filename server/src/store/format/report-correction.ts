// Corrects one flipped bit in the lengths of a run by trying each: they are right when the checksum of the index matches.
import { CorruptRecordError } from '../store.ts';
import { claimedContents, lengthPlaces, openBlock } from './report-block.ts';

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
