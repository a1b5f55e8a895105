// The search of the docs: results as you type; arrow keys, Enter and Escape.
import { useId, useMemo, useRef, useState } from 'preact/hooks';
import { useShortcuts } from '../ui/shortcuts.ts';
import { useDocs } from './docs-context.ts';
import { type SearchEntry, searchDocs, searchEntries } from './search.ts';

type SearchBoxProps = { readonly onChoose: (anchor: string) => void };

/** The place that an arrow key moves to; undefined for other keys. */
const movedBy = (key: string, at: number, count: number): number | undefined => {
  if (key === 'ArrowDown') return (at + 1) % count;
  return key === 'ArrowUp' ? (at - 1 + count) % count : undefined;
};

export const SearchBox = ({ onChoose }: SearchBoxProps) => {
  const { docs } = useDocs();
  const id = useId();
  const box = useRef<HTMLInputElement>(null);
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(0);
  const entries = useMemo(() => searchEntries(docs), [docs]);
  const results = useMemo(() => searchDocs(entries, query), [entries, query]);
  const isOpen = query.trim() !== '';
  useShortcuts('In the API docs', [{ keys: ['/'], text: 'Search the API docs', run: () => box.current?.focus() }]);
  const search = (text: string): void => {
    setQuery(text);
    setActive(0);
  };
  const choose = ({ anchor }: SearchEntry): void => {
    search('');
    onChoose(anchor);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moved = results.length === 0 ? undefined : movedBy(event.key, active, results.length);
    const chosen = results[active];
    if (moved !== undefined) setActive(moved);
    else if (event.key === 'Enter' && chosen !== undefined) choose(chosen);
    else if (event.key === 'Escape' && query !== '') search('');
    else return;
    event.preventDefault();
  };
  return (
    <div class="docs-search">
      <input
        ref={box}
        type="search"
        // biome-ignore lint/a11y/noRedundantRoles: without a list attribute, a search box is none
        role="combobox"
        list={undefined}
        aria-label="Search the API docs"
        aria-expanded={isOpen}
        aria-controls={`${id}-results`}
        aria-autocomplete="list"
        aria-activedescendant={isOpen && results.length > 0 ? `${id}-${active}` : undefined}
        placeholder="Search ( / )"
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={({ currentTarget }) => search(currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Results id={id} results={results} active={active} query={query} onChoose={choose} />
    </div>
  );
};

const Results = ({
  id,
  results,
  active,
  query,
  onChoose,
}: {
  readonly id: string;
  readonly results: readonly SearchEntry[];
  readonly active: number;
  readonly query: string;
  readonly onChoose: (entry: SearchEntry) => void;
}) => {
  const isOpen = query.trim() !== '';
  return (
    <>
      <div
        id={`${id}-results`}
        class="docs-results"
        role="listbox"
        aria-label="Search results"
        hidden={!isOpen || results.length === 0}
      >
        {results.map((entry, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the input handles the keys
          <div
            key={`${entry.anchor} ${entry.kind} ${entry.title}`}
            id={`${id}-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => onChoose(entry)}
          >
            <span class="docs-result-kind">{entry.kind}</span>
            <span class="docs-result-title">{entry.title}</span>
            <span class="docs-result-context">{entry.context}</span>
          </div>
        ))}
      </div>
      <p class={isOpen && results.length === 0 ? 'docs-results docs-no-result' : 'unseen'} role="status">
        {isOpen && (results.length === 0 ? `Nothing matches “${query.trim()}”.` : `${results.length} results`)}
      </p>
    </>
  );
};
