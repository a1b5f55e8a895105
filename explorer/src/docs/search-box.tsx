// The search of the docs: results as you type; arrow keys, Enter and Escape. The results close when the focus leaves.
import type { TargetedFocusEvent } from 'preact';
import { useEffect, useId, useMemo, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { useShortcuts } from '../ui/use-shortcuts.ts';
import { useDocs } from './docs-context.ts';
import { type SearchEntry, searchDocs, searchEntries } from './search.ts';

type SearchBoxProps = { readonly onChoose: (anchor: string) => void };

/** The place that an arrow key moves to; undefined for other keys. */
const movedBy = (key: string, at: number, count: number): number | undefined => {
  if (key === 'ArrowDown') return (at + 1) % count;
  return key === 'ArrowUp' ? (at - 1 + count) % count : undefined;
};

/** What is typed, which result is selected, and whether the results are shown. */
const useSearch = (onChoose: SearchBoxProps['onChoose']) => {
  const { docs } = useDocs();
  const [query, setQuery] = useState('');
  const [active, setActive] = useState(0);
  const [isExpanded, setExpanded] = useState(false);
  const entries = useMemo(() => searchEntries(docs), [docs]);
  const results = useMemo(() => searchDocs(entries, query), [entries, query]);
  const isOpen = isExpanded && query.trim() !== '';
  const search = (text: string): void => {
    setQuery(text);
    setActive(0);
    setExpanded(true);
  };
  const choose = ({ anchor }: SearchEntry): void => {
    search('');
    onChoose(anchor);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing || query === '') return;
    const isMove = event.key === 'ArrowDown' || event.key === 'ArrowUp';
    const chosen = results[active];
    if (event.key === 'Escape') search('');
    else if (!isOpen && (isMove || event.key === 'Enter')) setExpanded(true);
    else if (isMove && results.length > 0) setActive(movedBy(event.key, active, results.length) ?? active);
    else if (event.key === 'Enter' && chosen !== undefined) choose(chosen);
    else return;
    event.preventDefault();
  };
  return { query, active, results, isOpen, search, choose, onKeyDown, show: setExpanded };
};

export function SearchBox({ onChoose }: SearchBoxProps) {
  const id = useId();
  const { shortcuts } = useExplorer();
  const hasKey = shortcuts.areLettersOn.value;
  const box = useRef<HTMLInputElement>(null);
  const { query, active, results, isOpen, search, choose, onKeyDown, show } = useSearch(onChoose);
  const hasList = isOpen && results.length > 0;
  useShortcuts('In the API docs', [{ keys: ['/'], text: 'Search the API docs', run: () => box.current?.focus() }]);
  useEffect(() => {
    if (hasList) document.getElementById(`${id}-${active}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, active, query, hasList]);
  const onFocusOut = ({ currentTarget, relatedTarget }: TargetedFocusEvent<HTMLElement>): void => {
    if (!(relatedTarget instanceof Node && currentTarget.contains(relatedTarget))) show(false);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys also work in the list, where assistive technology may move the focus
    <div class="docs-search" onKeyDown={onKeyDown} onFocusOut={onFocusOut}>
      <input
        ref={box}
        type="search"
        // biome-ignore lint/a11y/noRedundantRoles: without a list attribute, a search box is none
        role="combobox"
        list={undefined}
        aria-label="Search the API docs"
        aria-expanded={hasList}
        aria-controls={`${id}-results`}
        aria-autocomplete="list"
        aria-activedescendant={hasList ? `${id}-${active}` : undefined}
        placeholder={hasKey ? 'Search ( / )' : 'Search'}
        autocomplete="off"
        spellcheck={false}
        value={query}
        onInput={({ currentTarget }) => search(currentTarget.value)}
        onClick={() => show(true)}
      />
      <Results id={id} results={results} active={active} query={query} isOpen={isOpen} onChoose={choose} />
    </div>
  );
}

const Results = ({
  id,
  results,
  active,
  query,
  isOpen,
  onChoose,
}: {
  readonly id: string;
  readonly results: readonly SearchEntry[];
  readonly active: number;
  readonly query: string;
  readonly isOpen: boolean;
  readonly onChoose: (entry: SearchEntry) => void;
}) => (
  <>
    <div
      id={`${id}-results`}
      class="docs-results"
      role="listbox"
      tabIndex={-1} // browsers put what scrolls into the order of Tab
      onMouseDown={(event) => event.preventDefault()} // the focus stays in the input
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
