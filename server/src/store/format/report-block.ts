// The checksum of a report that is stored by itself.
import { crc32 } from 'node:zlib';
import type { Window } from '../store.ts';

/**
 * Checksum of a report under its key, so that bytes that stand under a wrong key are found out as well: the key seeds the CRC,
 * which for the same bytes differs whenever its seed does.
 */
export const reportChecksum = (
  stream: number,
  { validFromMs, observationsMs }: Window,
  fullReport: Uint8Array,
): number => crc32(fullReport, mix(mix(mix(stream, validFromMs), observationsMs), observationsMs / 2 ** 32));

const mix = (seed: number, value: number): number =>
  (Math.imul(seed ^ (value >>> 0), 0x9e3779b1) + value / 2 ** 32) >>> 0;
