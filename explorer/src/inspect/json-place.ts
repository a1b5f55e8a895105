// Where a text stops being JSON. Browsers word their parsers' errors differently, and not all of them name the place.

const tokenPattern =
  /\s*(?:([{}[\],:])|"[^"\\\n]*(?:\\.[^"\\\n]*)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)/y;

/** What may come next: `first` and `firstKey` may also close what has just been opened. */
type Expected = 'value' | 'first' | 'key' | 'firstKey' | 'colon' | 'next';

const closerOf: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/** The first place that cannot be part of a JSON value; the text's length where it breaks off; undefined where nothing is wrong. */
export const findJsonError = (text: string): number | undefined => {
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
};

/** A string or a word that the text breaks off in. */
const isUnfinished = (rest: string): boolean =>
  /^"[^"\\\n]*(?:\\.[^"\\\n]*)*\\?$/.test(rest) || ['true', 'false', 'null', '-'].some((word) => word.startsWith(rest));

/** What is expected after a token; undefined where it does not fit. Keeps what is open in `closers`. */
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
