// Seeded, random-access integer noise. A value depends on its key and position only, so any time range can be simulated on any machine,
// in any order, with the same result.

/** Hashes two 32-bit numbers into one; every input bit affects every output bit. */
export function mix(key: number, position: number): number {
  let hash = key ^ Math.imul(position, 0x9e3779b9);
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad);
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** A 32-bit key of a text and a parent key (FNV-1a, then mixed). */
export function keyOf(text: string, parent = 0): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mix(mix(parent, 1), hash);
}

/** Evenly spread over 0 ≤ u < 1. */
export const uniform = (key: number, position: number): number => mix(key, position) / 2 ** 32;

// Four 16-bit draws sum to a near-normal value without log or cos, whose last digits differ between engines.
const drawsMean = 2 * 65_535;
const drawsDeviation = 37_837.227_2; // sqrt(4 · (65536² − 1) / 12)

/** Near-normal: mean 0, standard deviation 1, never beyond ±3.47. */
export function gaussian(key: number, position: number): number {
  const first = mix(key, position);
  const second = mix(first, 2);
  const sum = (first >>> 16) + (first & 0xffff) + (second >>> 16) + (second & 0xffff);
  return (sum - drawsMean) / drawsDeviation;
}
