// The banner of a demo that still loads its history.
import { useExplorer } from '../../state/explorer.ts';

/** Shown above every page while a demo loads its history; nothing elsewhere. */
export const HistoryBanner = () => {
  const { historyLoaded } = useExplorer();
  const loaded = historyLoaded.value;
  if (loaded === undefined) return null;
  return (
    <aside class="history-banner" aria-label="History">
      <span>Loading history, {Math.floor(loaded * 100)} %</span>
      <progress value={loaded} aria-hidden="true" />
      <span class="muted">The newest part is there first.</span>
    </aside>
  );
};
