// Alerts as they are triggered, above every page until they are dismissed.
import { useExplorer } from '../../state/explorer.ts';
import { streamHref } from '../../state/router.ts';

export function Toasts() {
  const { alerts, catalog } = useExplorer();
  return (
    <div class="toasts" role="status" aria-label="Alerts">
      {alerts.toasts.value.map(({ seq, feedId, text }) => {
        const stream = catalog.find(feedId);
        return (
          <div key={seq} class="toast card">
            <div>
              <a href={streamHref(feedId)}>
                {stream === undefined ? 'Stream' : `${stream.baseAsset}/${stream.quoteAsset}`}
              </a>
              <p>{text}</p>
            </div>
            <button type="button" class="quiet" onClick={() => alerts.dismiss(seq)}>
              Dismiss
            </button>
          </div>
        );
      })}
    </div>
  );
}
