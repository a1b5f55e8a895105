// Shortens an input that fails: removes ranges, from halves to single bytes, as long as it still fails.

/** The shortest input that was found within so many tries. */
export const minimize = async (
  input: Buffer,
  fails: (candidate: Buffer) => boolean | Promise<boolean>,
  triesMax: number,
): Promise<Buffer> => {
  let shortest = input;
  let tries = 0;
  for (let size = Math.ceil(input.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let start = 0; start < shortest.length && tries < triesMax; ) {
      const candidate = Buffer.concat([shortest.subarray(0, start), shortest.subarray(start + size)]);
      tries += 1;
      if (await fails(candidate)) shortest = candidate;
      else start += size;
    }
  }
  return shortest;
};
