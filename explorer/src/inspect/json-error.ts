// Finds where a text stops being JSON. Browsers word parse errors differently, and not all of them have the position.

const tokenPattern =
  /\s*(?:([{}[\],:])|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)/y;

/** What may come next. `first` and `firstKey`: also the closing bracket of an empty list or object. */
type Expected = 'value' | 'first' | 'key' | 'firstKey' | 'colon' | 'next';

const closerOf: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** The first position that cannot be part of a JSON value; the text's length if it is cut off; undefined if it is valid. */
export function findJsonError(text: string): number | undefined {
  const length = text.trimEnd().length;
  const closers: string[] = [];
  let expected: Expected = 'value';
  let at = 0;
  while (at < length) {
    const start = at + Math.max(0, text.slice(at).search(/\S/));
    tokenPattern.lastIndex = at;
    const match = tokenPattern.exec(text);
    if (match === null) return isUnfinished(text.slice(start, length)) ? length : start;
    const next = nextOf(expected, match[1] ?? (text[start] === '"' ? 'text' : 'other'), closers);
    if (next === undefined) return start;
    expected = next;
    at = tokenPattern.lastIndex;
  }
  return closers.length > 0 || expected !== 'next' ? length : undefined;
}

/** Whether the text is cut off within a string or a word. */
const isUnfinished = (rest: string): boolean =>
  /^"[^"\\\n]*(?:\\.[^"\\\n]*)*\\?$/.test(rest) || ['true', 'false', 'null', '-'].some((word) => word.startsWith(rest));

/** What is expected after a token; undefined if the token is not allowed. `closers` is the stack of open brackets. */
const nextOf = (expected: Expected, token: string, closers: string[]): Expected | undefined => {
  const wantsValue = expected === 'value' || expected === 'first';
  const wantsKey = expected === 'key' || expected === 'firstKey';
  const closer = closerOf[token];
  if (closer !== undefined) {
    if (!wantsValue) return undefined;
    closers.push(closer);
    return token === '{' ? 'firstKey' : 'first';
  }
  if (token === '}' || token === ']') {
    const mayClose = expected === 'next' || expected === (token === '}' ? 'firstKey' : 'first');
    return mayClose && closers.pop() === token ? 'next' : undefined;
  }
  if (token === ',')
    return expected !== 'next' || closers.length === 0 ? undefined : closers.at(-1) === '}' ? 'key' : 'value';
  if (token === ':') return expected === 'colon' ? 'value' : undefined;
  if (wantsKey) return token === 'text' ? 'colon' : undefined;
  return wantsValue ? 'next' : undefined;
};
