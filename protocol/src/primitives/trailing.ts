// Text without certain characters at its end.

/**
 * Removes the characters of a set from the end of a text. A regular expression such as `/0+$/` looks for the end from each of them: 15,000 slashes
 * in a request would take half a second.
 */
export function withoutTrailing(text: string, characters: string): string {
  let end = text.length;
  while (end > 0 && characters.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}
