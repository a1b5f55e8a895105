// Owns the text of Server-Sent Events: pieces of a body become events, wherever the pieces were cut.

/** One event. `id` is the last one told, as the format says: it stays until another comes. */
export type ServerEvent = { readonly type: string; readonly id: string | undefined; readonly data: string };

/** Characters of one event; the longest report takes 9,000. What is longer is no event of this service. */
const eventCharactersMax = 1_048_576;

/** Reads events from pieces of text. A half event waits for its other half; one that never ends throws. */
export const createEventReader = (): ((piece: string) => readonly ServerEvent[]) => {
  let rest = '';
  let afterReturn = false;
  let [type, data, id]: [string, string[], string | undefined] = ['', [], undefined];
  let held = 0;

  const readLine = (line: string): ServerEvent | undefined => {
    if (line === '') {
      const event = data.length > 0 ? { type: type || 'message', id, data: data.join('\n') } : undefined;
      [type, data, held] = ['', [], 0];
      return event;
    }
    const colon = line.indexOf(':');
    if (colon === 0) return undefined;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'event') type = value;
    else if (field === 'data') data.push(value);
    else if (field === 'id' && !value.includes('\0')) id = value;
    held += line.length;
    return undefined;
  };

  return (piece) => {
    // A line may end in CR, LF or both, and the two may come in different pieces.
    const text = rest + (afterReturn && piece.startsWith('\n') ? piece.slice(1) : piece);
    if (piece !== '') afterReturn = piece.endsWith('\r');
    const lines = text.split(/\r\n|\n|\r/);
    rest = lines.pop() ?? '';
    const events = lines.map(readLine).filter((event) => event !== undefined);
    if (rest.length + held > eventCharactersMax) throw new Error('An event of the stream is longer than 1 MB.');
    return events;
  };
};
