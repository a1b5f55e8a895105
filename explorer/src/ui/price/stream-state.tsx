// Why a stream has no current price: its market is closed, it has ended, it has no data yet, or the fields of its reports are not known.
// Each has its own words and mark.
import type { CatalogEntry } from '@sealpost/protocol';
import type { LiveReport } from '../../state/live-prices.ts';
import { isMarketClosed } from '../price-age.ts';

/** `loading`: not known yet whether there is a report. */
export type StreamState = 'open' | 'closed' | 'ended' | 'empty' | 'unknown' | 'loading';

/** The state of a stream. `isEmpty`: the server has said that the stream has no report. */
export function streamStateOf(
  { status }: Pick<CatalogEntry, 'status'>,
  newest: Pick<LiveReport, 'decoded'> | undefined,
  isEmpty: boolean,
): StreamState {
  if (status === 'decommissioned') return 'ended';
  if (newest === undefined) return isEmpty ? 'empty' : 'loading';
  if (newest.decoded === undefined) return 'unknown';
  return isMarketClosed(newest.decoded) ? 'closed' : 'open';
}

/** The words for each state that needs some. */
const streamStateTexts = {
  closed: 'Market closed',
  ended: 'Stream ended',
  empty: 'No data yet',
  unknown: 'Fields not known',
} as const;

/** What each means, for a tooltip. */
const meanings = {
  closed: 'The market is closed, so the price does not change until it opens.',
  ended: 'The stream is decommissioned and gets no more reports.',
  empty: 'The stream has not had a report yet.',
  unknown: 'This page does not know the fields of the stream’s reports. They are delivered as signed.',
} as const;

/** A crescent, a square that is crossed out, an empty dashed circle, and a diamond: shapes that differ without color. */
const shapes = {
  closed: <path class="filled" d="M9.5 7.6A4.2 4.2 0 1 1 5.2 1.6a3.4 3.4 0 0 0 4.3 6z" />,
  ended: <path d="M1.6 1.6h8.8v8.8H1.6zM4 4l4 4m0-4L4 8" />,
  empty: <circle cx="6" cy="6" r="4.4" stroke-dasharray="2 1.6" />,
  unknown: <path d="M6 1.4 10.6 6 6 10.6 1.4 6z" />,
} as const;

/** The mark of a state; nothing while the market is open or the state is not known. */
export function StreamStateMark({ state }: { readonly state: StreamState }) {
  if (state === 'open' || state === 'loading') return null;
  return (
    <span class={`state-mark is-${state}`} title={meanings[state]}>
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        {shapes[state]}
      </svg>
      {streamStateTexts[state]}
    </span>
  );
}
