// The contents of the docs, with the section in view marked, and the search. On small screens it unfolds below a button.
import { useEffect, useState } from 'preact/hooks';
import { useEscape } from '../ui/panel.ts';
import { useDocs } from './docs-context.ts';
import type { ApiDocs, DocsOperation } from './document.ts';
import { SearchBox } from './search-box.tsx';

/** The section that is at the top of the view. Sections have the attribute `data-section`. */
const useSectionInView = (docs: ApiDocs): string | undefined => {
  const [current, setCurrent] = useState<string | undefined>(undefined);
  useEffect(() => {
    const sections = [...document.querySelectorAll<HTMLElement>('[data-section]')];
    const inView = new Set<Element>();
    // A section counts while it crosses the upper third of the view.
    const observer = new IntersectionObserver(
      (entries) => {
        for (const { target, isIntersecting } of entries) {
          if (isIntersecting) inView.add(target);
          else inView.delete(target);
        }
        const first = sections.find((section) => inView.has(section));
        if (first !== undefined) setCurrent(first.id);
      },
      { rootMargin: '-10% 0px -60% 0px' },
    );
    for (const section of sections) observer.observe(section);
    return () => observer.disconnect();
  }, [docs]);
  return current;
};

const operationText = ({ method, path }: DocsOperation): string => {
  const short = path.replace(/^\/api\/(?:v1\/)?/, '');
  return method === 'GET' ? short : `${method} ${short}`;
};

type Group = { readonly title: string; readonly links: readonly { readonly id: string; readonly text: string }[] };

const groupsOf = ({ guides, groups }: ApiDocs): readonly Group[] => [
  {
    title: 'Guides',
    links: [{ id: 'base-url', text: 'Base URL' }, ...guides.map(({ id, title }) => ({ id, text: title }))],
  },
  ...groups.map(({ title, operations }) => ({
    title,
    links: operations.map((operation) => ({ id: operation.id, text: operationText(operation) })),
  })),
  { title: 'Reference', links: [{ id: 'error-codes', text: 'Error codes' }] },
];

export function DocsSidebar({ onChoose }: { readonly onChoose: (anchor: string) => void }) {
  const { docs } = useDocs();
  const [isOpen, setOpen] = useState(false);
  const current = useSectionInView(docs);
  useEffect(() => {
    // Only the list scrolls: `scrollIntoView` would move the page too.
    const link = document.querySelector<HTMLElement>('.docs-contents [aria-current]');
    const list = link?.closest<HTMLElement>('.docs-contents');
    // A focus that one sees in the list stays in view.
    if (link == null || list == null || list.querySelector(':focus-visible') !== null) return;
    const { top, bottom } = list.getBoundingClientRect();
    const box = link.getBoundingClientRect();
    if (box.top < top || box.bottom > bottom) list.scrollTop += box.top - top - list.clientHeight / 3;
  }, [current]);
  useEscape(isOpen ? 'docs-contents' : undefined, () => setOpen(false));
  return (
    <div class="docs-sidebar">
      <SearchBox
        onChoose={(anchor) => {
          setOpen(false);
          onChoose(anchor);
        }}
      />
      <button
        type="button"
        class="docs-contents-button"
        aria-expanded={isOpen}
        aria-controls="docs-contents"
        onClick={() => setOpen(!isOpen)}
      >
        Contents
      </button>
      <nav id="docs-contents" class={`docs-contents ${isOpen ? 'is-open' : ''}`} aria-label="API docs">
        {groupsOf(docs).map(({ title, links }) => (
          <div key={title}>
            <h2>{title}</h2>
            <ul>
              {links.map(({ id, text }) => (
                <li key={id}>
                  <a
                    href={`#${id}`}
                    aria-current={id === current ? 'location' : undefined}
                    onClick={() => setOpen(false)}
                  >
                    {text}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </nav>
    </div>
  );
}
