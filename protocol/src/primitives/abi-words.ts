// The part of ABI encoding that reports and verifier calls need: 32-byte words, `bytes`, arrays of both and tuples, as hex digits without 0x.
// A general encoder would be a 23 MB dependency; property tests compare this one with ox's (D106).
import type { Hex } from './hex-bytes.ts';

/** Types of a single word. `time64` is a uint64 as a number. */
export type WordType = 'bytes32' | 'uint32' | 'time64' | 'uint64' | 'uint192' | 'int192';

/** A tuple element of variable length: encoded after the tuple's head, which has its offset. */
export type Tail = { readonly tail: string };

const wordBytes = 32;
const wordDigits = 64;
const wordPattern = /^0x[0-9a-fA-F]{64}$/;
const bytesPattern = /^0x(?:[0-9a-fA-F]{2})*$/;

/** Whether a value is `0x` and an even number of hex digits, in any case. */
export const isHexBytes = (value: unknown): value is Hex => typeof value === 'string' && bytesPattern.test(value);

/** 32 bytes of hex as a word; undefined for anything else. */
export const hexWord = (value: unknown): string | undefined =>
  typeof value === 'string' && wordPattern.test(value) ? value.slice(2).toLowerCase() : undefined;

const numberWord = (value: number | bigint): string => value.toString(16).padStart(wordDigits, '0');

const wholeNumber = (max: number) => (value: unknown) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max ? numberWord(value) : undefined;

const unsignedWord = (bits: bigint) => (value: unknown) =>
  typeof value === 'bigint' && value >= 0n && value >> bits === 0n ? numberWord(value) : undefined;

const int192Max = 2n ** 191n - 1n;

const encoders: Readonly<Record<WordType, (value: unknown) => string | undefined>> = {
  bytes32: hexWord,
  uint32: wholeNumber(2 ** 32 - 1),
  time64: wholeNumber(Number.MAX_SAFE_INTEGER),
  uint64: unsignedWord(64n),
  uint192: unsignedWord(192n),
  int192: (value) =>
    typeof value === 'bigint' && value <= int192Max && value >= -int192Max - 1n
      ? numberWord(BigInt.asUintN(256, value))
      : undefined,
};

/** One value as a word; undefined if it does not fit the type. Nothing is converted: a bigint field takes a bigint. */
export const encodeWord = (type: WordType, value: unknown): string | undefined => encoders[type](value);

/** An element of type `bytes`: its length, then the bytes padded with zeros to whole words. */
export function bytesTail(bytes: Hex): Tail {
  const digits = bytes.slice(2).toLowerCase();
  const padded = Math.ceil(digits.length / wordDigits) * wordDigits;
  return { tail: numberWord(digits.length / 2) + digits.padEnd(padded, '0') };
}

/** An element of type `bytes32[]`: the number of words, then the words. */
export const arrayTail = (words: readonly string[]): Tail => ({ tail: numberWord(words.length) + words.join('') });

/** A tuple: words and the offset of each tail, then the tails in the same order. */
export function encodeTuple(elements: readonly (string | Tail)[]): Hex {
  let end = elements.length * wordBytes;
  const head = elements.map((element) => {
    if (typeof element === 'string') return element;
    const offset = end;
    end += element.tail.length / 2;
    return numberWord(offset);
  });
  const tails = elements.map((element) => (typeof element === 'string' ? '' : element.tail));
  return `0x${head.join('')}${tails.join('')}`;
}

/** An element of type `bytes[]`: the number of items, then their tuple. */
export const bytesArrayTail = (items: readonly Hex[]): Tail => ({
  tail: numberWord(items.length) + encodeTuple(items.map(bytesTail)).slice(2),
});
