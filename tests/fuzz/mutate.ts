// Mutates inputs, the same way for the same random numbers: bits, bytes, ranges, words of the format, integers, lengths, repetitions.

import { pick, type Random } from '../support/random.ts';
import { mutateJson } from './mutate-json.ts';
import type { Target } from './target.ts';

const integers = [0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 1_000];
const largeIntegers = [4_095, 4_096, 4_097, 16_384, 32_767, 32_768, 65_535, 65_536, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1];
/** Numbers as texts have them, at the bounds of types and beyond. */
const numerals = [
  ...[...integers, ...largeIntegers].map(String),
  ...['-1', '-0', '00', '1e3', '1e999', '0x10', '+1', ' 1', '0.5', 'NaN', 'Infinity', '4294967296', '9007199254740991'],
  ...['9007199254740992', '8640000000000', '8640000000001', '18446744073709551615', '1'.repeat(40)],
];
const bytes = [
  0x00, 0x01, 0x0a, 0x0d, 0x20, 0x22, 0x25, 0x2c, 0x2f, 0x5c, 0x7b, 0x7f, 0x80, 0xc0, 0xe2, 0xf0, 0xfe, 0xff,
];

/** A range of an input, often short. */
const range = (random: Random, length: number): readonly [start: number, end: number] => {
  const start = random(length + 1);
  const size = random(3) === 0 ? random(length + 1) : random(17);
  return [start, Math.min(length, start + size)];
};

const spliced = (input: Buffer, start: number, end: number, inserted: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, start), inserted, input.subarray(end)]);

type Material = { readonly random: Random; readonly words: readonly string[]; readonly other: () => Buffer };
type Mutation = (input: Buffer, material: Material) => Buffer;

/** Changes a copy of the input in place. */
const changed = (input: Buffer, change: (copy: Buffer) => void): Buffer => {
  const copy = Buffer.from(input);
  if (copy.length > 0) change(copy);
  return copy;
};

/** Replaces a number of two or four bytes, in either order, by one nearby or at a bound. */
const mutateLength: Mutation = (input, { random }) =>
  changed(input, (copy) => {
    const width = pick(random, [1, 2, 4]);
    if (copy.length < width) return;
    const at = random(copy.length - width + 1);
    const isBig = random(2) === 0;
    const before = isBig ? copy.readUIntBE(at, width) : copy.readUIntLE(at, width);
    const next = random(2) === 0 ? before + random(9) - 4 : pick(random, [...integers, ...largeIntegers]);
    const value = ((next % 2 ** (8 * width)) + 2 ** (8 * width)) % 2 ** (8 * width);
    if (isBig) copy.writeUIntBE(value, at, width);
    else copy.writeUIntLE(value, at, width);
  });

/** Replaces a numeral of the text. */
const mutateNumeral: Mutation = (input, { random }) => {
  const found = [...input.toString('latin1').matchAll(/\d+(?:\.\d+)?/g)];
  if (found.length === 0) return input;
  const { index, 0: digits } = pick(random, found);
  return spliced(input, index, index + digits.length, Buffer.from(pick(random, numerals)));
};

/** Repeats a short range, seldom up to 16,384 times: deep nesting, long lines, many headers. */
const repeatRange: Mutation = (input, { random }) => {
  const start = random(input.length + 1);
  const end = Math.min(input.length, start + 1 + random(4));
  const piece = input.subarray(start, end);
  if (piece.length === 0) return input;
  const times = 2 ** random(random(16) === 0 ? 15 : 5);
  return spliced(input, end, end, Buffer.alloc(times * piece.length, piece));
};

const mutations: readonly Mutation[] = [
  (input, { random }) =>
    changed(input, (copy) => {
      const at = random(copy.length);
      copy[at] = (copy[at] as number) ^ (1 << random(8));
    }),
  (input, { random }) =>
    changed(input, (copy) => {
      copy[random(copy.length)] = random(2) === 0 ? pick(random, bytes) : random(256);
    }),
  (input, { random }) => {
    const [start] = range(random, input.length);
    return spliced(input, start, start, Buffer.from(Array.from({ length: 1 + random(8) }, () => random(256))));
  },
  (input, { random }) => spliced(input, ...range(random, input.length), Buffer.alloc(0)),
  (input, { random }) => {
    const copied = input.subarray(...range(random, input.length));
    return spliced(input, ...range(random, input.length), copied);
  },
  (input, { random, other }) => {
    const found = other();
    return spliced(input, ...range(random, input.length), found.subarray(...range(random, found.length)));
  },
  (input, { random, other }) =>
    Buffer.concat([input.subarray(0, random(input.length + 1)), other().subarray(random(64))]),
  (input, { random, words }) =>
    words.length === 0 ? input : spliced(input, ...range(random, input.length), Buffer.from(pick(random, words))),
  (input, { random, words }) => {
    const at = random(input.length + 1);
    return words.length === 0 ? input : spliced(input, at, at, Buffer.from(pick(random, words)));
  },
  (input, { random }) => input.subarray(0, random(input.length + 1)),
  mutateLength,
  mutateLength,
  mutateNumeral,
  mutateNumeral,
  repeatRange,
];

/** Longest input of a target that names no other. */
const inputBytesDefault = 65_536;

/** A new input from one of a pool. */
export const mutate = (
  random: Random,
  input: Buffer,
  pool: readonly Buffer[],
  { words = [], json, inputBytesMax = inputBytesDefault }: Pick<Target, 'words' | 'json' | 'inputBytesMax'>,
): Buffer => {
  const material = { random, words, other: () => pick(random, pool) };
  let mutated = input;
  for (let count = 1 + random(random(4) === 0 ? 8 : 2); count > 0; count--) {
    const structured = json !== undefined && random(3) > 0 ? mutateJson(random, mutated, json, words) : undefined;
    mutated = structured ?? pick(random, mutations)(mutated, material);
  }
  return mutated.length > inputBytesMax ? mutated.subarray(0, inputBytesMax) : mutated;
};
