// The part of Markdown that the document's texts use, as values: paragraphs, lists, code blocks; within them `code` and **bold**.

export type TextPart = { readonly kind: 'text' | 'code' | 'strong'; readonly text: string };

export type MarkdownBlock =
  | { readonly kind: 'paragraph'; readonly parts: readonly TextPart[] }
  | { readonly kind: 'list'; readonly items: readonly (readonly TextPart[])[] }
  | { readonly kind: 'code'; readonly language: string; readonly text: string };

/** Whatever is not marked is text. */
export const parseText = (text: string): readonly TextPart[] =>
  text
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .filter((piece) => piece !== '')
    .map((piece) => {
      if (/^`.+`$/s.test(piece)) return { kind: 'code', text: piece.slice(1, -1) };
      return /^\*\*.+\*\*$/s.test(piece) ? { kind: 'strong', text: piece.slice(2, -2) } : { kind: 'text', text: piece };
    });

/** Blocks are separated by blank lines, which a code block may contain. */
export const parseMarkdown = (text: string): readonly MarkdownBlock[] =>
  text.split(/^```/m).flatMap((piece, i): readonly MarkdownBlock[] => {
    if (i % 2 === 1) {
      const end = piece.indexOf('\n');
      return [{ kind: 'code', language: piece.slice(0, end).trim(), text: piece.slice(end + 1).trimEnd() }];
    }
    return piece
      .split(/\n{2,}/)
      .map((part) => part.trim())
      .filter((part) => part !== '')
      .map(toBlock);
  });

const toBlock = (text: string): MarkdownBlock => {
  const lines = text.split('\n');
  return lines.every((line) => line.startsWith('- '))
    ? { kind: 'list', items: lines.map((line) => parseText(line.slice(2))) }
    : { kind: 'paragraph', parts: parseText(text) };
};
