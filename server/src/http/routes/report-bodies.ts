// Bodies with a list of rendered entries: a few pieces as they are, more of them copied together.
import type { LongWork } from '../../access/long-work.ts';
import type { Answer } from '../answer.ts';

const openings = { reports: Buffer.from('{"reports":['), feeds: Buffer.from('{"feeds":[') } as const;
const comma = Buffer.from(',');

/** The body that holds these pieces, each of one entry or several, with what else it holds after them. */
export function listBody(name: keyof typeof openings, json: readonly Buffer[], rest = ''): NonNullable<Answer['body']> {
  const body: Buffer[] = [openings[name]];
  for (const [i, piece] of json.entries()) {
    if (i > 0) body.push(comma);
    body.push(piece);
  }
  body.push(Buffer.from(`]${rest}}`));
  return body.length > piecesMax ? Buffer.concat(body) : body;
}

/** Characters of a text that are put together at once: less than 1 ms. */
const pieceCharacters = 250_000;

/**
 * Makes a long body of ASCII texts, piece by piece, each in a slice of its own: as one text, 3 MB would be put together and written in one turn of the
 * event loop, for 5 ms. A short body needs no slice.
 */
export function createTextPieces(slice: LongWork['slice']) {
  const pieces: Buffer[] = [];
  let texts: string[] = [];
  let length = 0;
  const join = (): void => {
    pieces.push(Buffer.from(texts.join(''), 'latin1'));
    [texts, length] = [[], 0];
  };
  return {
    add: async (text: string): Promise<void> => {
      texts.push(text);
      length += text.length;
      if (length >= pieceCharacters) await slice(async () => join());
    },
    /** The body, with its last text. */
    end: (text: string): NonNullable<Answer['body']> => {
      texts.push(text);
      join();
      const [only] = pieces;
      return only !== undefined && pieces.length === 1 ? only : pieces;
    },
  };
}

/** More pieces than this cost more to send than to copy. */
const piecesMax = 16;
