// The banner of a demo that still loads its history.
import { useExplorer } from '../../state/explorer.ts';

/** Shown above every page while a demo loads its history, and then until the user updates the page, which never changes by itself. */
export function HistoryBanner({ update }: { readonly update: () => void }) {
  const { historyLoaded } = useExplorer();
  const loaded = historyLoaded.value;
  if (loaded === undefined) return null;
  return (
    <aside class="history-banner" aria-label="History">
      <span>{loaded < 1 ? `Loading history, ${Math.floor(loaded * 100)} %` : 'All history is loaded.'}</span>
      {loaded < 1 ? (
        <>
          <progress value={loaded} aria-hidden="true" />
          <span class="muted">The newest part is there first.</span>
        </>
      ) : (
        <button type="button" class="quiet" onClick={update}>
          Update the page
        </button>
      )}
    </aside>
  );
}
