import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { writeHex } from './hex-bytes.ts';

const bytesOf = (hex: string): string => {
  const bytes = new Uint8Array(hex.length / 2);
  writeHex(hex, bytes, 0);
  return Buffer.from(bytes).toString('hex');
};

describe('hex into bytes', () => {
  it('gives back any bytes, in either case', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 4_096 }), (bytes) => {
        const hex = Buffer.from(bytes).toString('hex');
        expect(bytesOf(hex)).toBe(hex);
        expect(bytesOf(hex.toUpperCase())).toBe(hex);
      }),
      { numRuns: 200 },
    );
  });

  it('writes at the offset and nowhere else', () => {
    const bytes = new Uint8Array(4).fill(9);
    writeHex('0a0b', bytes, 1);
    expect([...bytes]).toEqual([9, 10, 11, 9]);
  });

  it.each(['0', 'abc', '0g', 'g0', '0x12', ' 1', 'é0', '٠٠'])('refuses %j', (hex) => {
    expect(() => writeHex(hex, new Uint8Array(8), 0)).toThrow(TypeError);
  });

  it('refuses what does not fit', () => {
    expect(() => writeHex('0a0b', new Uint8Array(2), 1)).toThrow(RangeError);
    expect(() => writeHex('00'.repeat(9_000), new Uint8Array(9_000), 0)).toThrow(RangeError);
  });
});
