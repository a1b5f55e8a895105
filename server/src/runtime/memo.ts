// Memoizes functions of a text, for texts that recur: clients that poll send the same target each time. At the bound it forgets everything, which costs
// less than tracking use.

/** Characters of all remembered texts together: a megabyte, for some thousand targets. */
const charactersMax = 1_000_000;

/** Memoizes `work`, which must depend on the text alone and return immutable values. Errors are not kept. */
export const memoise = <T>(work: (text: string) => T): ((text: string) => T) => {
  const known = new Map<string, T>();
  let characters = 0;
  return (text) => {
    const remembered = known.get(text);
    if (remembered !== undefined) return remembered;
    const result = work(text);
    characters += text.length;
    if (characters > charactersMax) {
      known.clear();
      characters = text.length;
    }
    known.set(text, result);
    return result;
  };
};
