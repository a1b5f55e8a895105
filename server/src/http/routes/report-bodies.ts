// Bodies with a list of rendered entries: a few pieces as they are, more of them copied together.
import type { Answer } from '../answer.ts';

const openings = { reports: Buffer.from('{"reports":['), feeds: Buffer.from('{"feeds":[') } as const;
const comma = Buffer.from(',');

/** The body that holds these pieces, each of one entry or several, with what else it holds after them. */
export const listBody = (
  name: keyof typeof openings,
  json: readonly Buffer[],
  rest = '',
): NonNullable<Answer['body']> => {
  const body: Buffer[] = [openings[name]];
  for (const [i, piece] of json.entries()) {
    if (i > 0) body.push(comma);
    body.push(piece);
  }
  body.push(Buffer.from(`]${rest}}`));
  return body.length > piecesMax ? Buffer.concat(body) : body;
};

/** More pieces than this cost more to send than to copy. */
const piecesMax = 16;
