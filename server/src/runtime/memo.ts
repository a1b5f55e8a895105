// Memoizes functions of a text, for texts that recur: clients that poll send the same target each time. At its bounds it forgets everything, which costs
// less than tracking use.

/** Characters of all remembered texts together: a megabyte, for some thousand targets. */
const charactersMax = 1_000_000;
/** By then most texts are of a second that nobody asks for again: without this, memory would grow for hours before it has what all routes may keep. */
const keptMs = 60_000;

/** Memoizes `work`, which must depend on the text alone and return immutable values. Errors are not kept. */
export const memoise = <T>(
  work: (text: string) => T,
  monotonicMs: () => number = () => performance.now(),
): ((text: string) => T) => {
  let known = new Map<string, T>();
  let characters = 0;
  let begunMs = Number.NEGATIVE_INFINITY;
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    const result = work(text);
    const nowMs = monotonicMs();
    characters += text.length;
    if (characters > charactersMax || nowMs - begunMs > keptMs) {
      known = new Map(); // not cleared: D232
      characters = text.length;
      begunMs = nowMs;
    }
    known.set(text, result);
    return result;
  };
};
