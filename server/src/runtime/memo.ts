// Remembering what was worked out from a text, for texts that come again and again: clients that poll send the same target each
// time. Holds so many characters at most and then forgets them all, which costs less than keeping an order.

/** Characters of all remembered texts together: a megabyte, for some thousand targets. */
const charactersMax = 1_000_000;

/** Remembers the results of `work`, which must depend on the text alone and return what nobody changes. What it throws is not remembered. */
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
