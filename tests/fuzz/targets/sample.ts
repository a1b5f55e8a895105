// Targets with planted bugs: what the fuzzer must find, and does in its own tests.
import type { Target } from '../target.ts';

/** A length, then a text of that length. The planted bug: a length beyond the input is not noticed. */
const decodeText = (input: Buffer): string => {
  if (input.length < 3 || input[0] !== 0x53) throw new RangeError('It is not a text.');
  return input.toString('latin1', 3, 3 + input.readUInt16BE(1));
};

const encodeText = (text: string): Buffer => {
  const head = Buffer.from([0x53, 0, 0]);
  head.writeUInt16BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text, 'latin1')]);
};

export const openBroken = async (): Promise<Target> => ({
  seeds: [encodeText('hello'), encodeText('')],
  run: (input) => {
    try {
      const text = decodeText(input);
      if (text.length !== input.readUInt16BE(1)) throw new Error('A text is shorter than its length.');
      return 'accepted';
    } catch (error) {
      if (error instanceof RangeError) return 'refused';
      throw error;
    }
  },
});

export const openHanging = async (): Promise<Target> => {
  for (const endMs = performance.now() + 700; performance.now() < endMs; ); // as one with a server: its start is no hang
  return {
    seeds: [encodeText('hello')],
    run: (input) => {
      for (let at = 0; at < input.length; ) at += input[at] === 0xff ? 0 : 1; // the planted bug
      return 'read';
    },
  };
};
