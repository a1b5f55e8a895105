// Owns `{"reports":[…]}` around reports that are rendered already: pieces of the body, without copying them together.

const opening = Buffer.from('{"reports":[');
const comma = Buffer.from(',');

/** The body that holds these pieces, with what else it holds after them. */
export const reportsBody = (json: readonly Buffer[], rest = ''): readonly Buffer[] => {
  const body: Buffer[] = [opening];
  for (const [i, piece] of json.entries()) {
    if (i > 0) body.push(comma);
    body.push(piece);
  }
  body.push(Buffer.from(`]${rest}}`));
  return body.length > piecesMax ? [Buffer.concat(body)] : body;
};

/** More pieces than this cost more to send than to copy. */
const piecesMax = 16;
