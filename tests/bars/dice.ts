// Random choices that a seed repeats.

/** Small, seeded, good enough to pick bytes: `roll(sides)` is 0 to sides − 1. */
export const createDice = (seed: number) => {
  let state = seed;
  return (sides: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
};
