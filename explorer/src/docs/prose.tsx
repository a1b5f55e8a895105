// Texts of the document on the page: Markdown as elements, code blocks with a copy button. Texts are never parsed as HTML.
import { Copy } from '../ui/components.tsx';
import { useDocs } from './docs-context.ts';
import { errorAnchor } from './document.ts';
import { parseMarkdown, parseText, type TextPart } from './markdown.ts';

/** A block of code. `label` is what its button copies. */
export const CodeBlock = ({
  text,
  label,
  copied = text,
}: {
  readonly text: string;
  readonly label: string;
  /** What the button copies, if the shown text is shortened. */
  readonly copied?: string;
}) => (
  <figure class="docs-code">
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keyboard */}
    <pre tabIndex={0}>
      <code>{text}</code>
    </pre>
    <Copy text={copied} label={`Copy ${label}`} />
  </figure>
);

/** Code that names an error code or a path of the API leads to it. */
const Code = ({ text }: { readonly text: string }) => {
  const { docs } = useDocs();
  const operation = docs.groups.flatMap(({ operations }) => operations).find(({ path }) => path === text);
  const isError = docs.errors.some(({ code }) => code === text);
  const anchor = isError ? errorAnchor(text) : operation?.id;
  const code = <code>{text}</code>;
  return anchor === undefined ? code : <a href={`#${anchor}`}>{code}</a>;
};

const Parts = ({ parts }: { readonly parts: readonly TextPart[] }) => (
  <>
    {parts.map(({ kind, text }, i) => {
      if (kind === 'code') return <Code key={i} text={text} />;
      return kind === 'strong' ? <strong key={i}>{text}</strong> : text;
    })}
  </>
);

/** A text of one paragraph, within another element. */
export const InlineText = ({ text }: { readonly text: string }) => <Parts parts={parseText(text)} />;

export const Prose = ({ text, label }: { readonly text: string; readonly label: string }) => (
  <>
    {parseMarkdown(text).map((block, i) => {
      if (block.kind === 'code') return <CodeBlock key={i} text={block.text} label={`${label}, code ${i + 1}`} />;
      if (block.kind === 'paragraph')
        return (
          <p key={i}>
            <Parts parts={block.parts} />
          </p>
        );
      return (
        <ul key={i} class="docs-list">
          {block.items.map((item, index) => (
            <li key={index}>
              <Parts parts={item} />
            </li>
          ))}
        </ul>
      );
    })}
  </>
);
