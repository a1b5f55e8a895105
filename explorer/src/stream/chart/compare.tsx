// Choosing a second stream to compare with: a search in the catalog, and the chosen one with a button that removes it.
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import type { StreamChart } from './chart-hooks.ts';

const matchesMax = 8;

/** `BTC/USD`. */
export const pairNameOf = ({ baseAsset, quoteAsset }: Pick<CatalogEntry, 'baseAsset' | 'quoteAsset'>): string =>
  `${baseAsset}/${quoteAsset}`;

/** Streams whose names, assets or feed IDs have all the words. */
export function searchComparable(streams: readonly CatalogEntry[], text: string): readonly CatalogEntry[] {
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  const matches = streams.filter((stream) => {
    const own = `${stream.name} ${pairNameOf(stream)} ${stream.assetName} ${stream.feedId}`.toLowerCase();
    return words.every((word) => own.includes(word));
  });
  return matches.slice(0, matchesMax);
}

export function Compare({
  chart: { model, actions },
  feedId,
}: {
  readonly chart: StreamChart;
  readonly feedId: string;
}) {
  const { catalog } = useExplorer();
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const compareId = model.compareId.value;
  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  const choose = (compare: string | undefined): void => {
    actions.set({ compare });
    close();
  };
  const other = compareId === undefined ? undefined : catalog.find(compareId);
  return (
    <div class="chart-compare">
      <div class="button-group">
        <button ref={button} type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {compareId === undefined ? 'Compare' : `vs ${other === undefined ? 'unknown stream' : pairNameOf(other)}`}
        </button>
        {compareId !== undefined && (
          <button
            type="button"
            aria-label="End the comparison"
            title="End the comparison"
            onClick={() => choose(undefined)}
          >
            ×
          </button>
        )}
      </div>
      {isOpen && <StreamSearch feedId={feedId} onChoose={choose} onClose={close} />}
    </div>
  );
}

const StreamSearch = ({
  feedId,
  onChoose,
  onClose,
}: {
  readonly feedId: string;
  readonly onChoose: (feedId: string) => void;
  readonly onClose: () => void;
}) => {
  const { catalog } = useExplorer();
  const [text, setText] = useState('');
  const panel = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  useEffect(() => {
    const onPress = ({ target }: Event): void => {
      if (target instanceof Node && panel.current?.parentElement?.contains(target) === false) onClose();
    };
    document.addEventListener('pointerdown', onPress);
    return () => document.removeEventListener('pointerdown', onPress);
  }, []);
  const state = catalog.state.value;
  const others =
    state.phase === 'ready'
      ? state.streams.filter((one) => one.feedId !== feedId && state.readable.has(one.feedId))
      : [];
  const found = searchComparable(others, text);
  return (
    <search
      ref={panel}
      class="chart-search"
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        onClose();
      }}
    >
      <input
        ref={input}
        type="search"
        aria-label="Compare with a stream"
        placeholder="Stream to compare with"
        value={text}
        onInput={({ currentTarget }) => setText(currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || found[0] === undefined) return;
          event.preventDefault(); // or the button that gets the focus is clicked
          onChoose(found[0].feedId);
        }}
      />
      <ul>
        {found.map((stream) => (
          <li key={stream.feedId}>
            <button type="button" class="quiet" onClick={() => onChoose(stream.feedId)}>
              <strong>{pairNameOf(stream)}</strong> <span class="muted">{stream.name}</span>
            </button>
          </li>
        ))}
        {found.length === 0 && <li class="muted">No stream matches.</li>}
      </ul>
    </search>
  );
};
