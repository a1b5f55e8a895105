// The row of the stream that Back has returned from. It gets the focus, which follows its stream and does not pause a live order until the user acts.
import type { CatalogEntry } from '@sealpost/protocol';
import { useEffect, useMemo } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import type { PageAddress } from '../state/router.ts';

type Listed = Pick<CatalogEntry, 'feedId'>;

/** The link of a row; null if the row does not exist. */
export const linkOf = (row: number): HTMLElement | null => document.querySelector<HTMLElement>(`[data-row="${row}"] a`);

/** The row of the stream that Back has returned from; undefined if it is not in the list. */
const returnedRow = (streams: readonly Listed[], from: PageAddress['returnedFrom']): number | undefined => {
  const row =
    from === undefined || !('feedId' in from) ? -1 : streams.findIndex(({ feedId }) => feedId === from.feedId);
  return row === -1 ? undefined : row;
};

/** On the link that has the focus because of Back. Preact does not know it: elements of a row show other streams over time. */
const mark = 'data-returned';
const marked = (): Element | null => document.querySelector(`[${mark}]`);
const unmark = (): void => marked()?.removeAttribute(mark);

const focusReturned = (row: number): void => {
  const link = linkOf(row);
  link?.focus({ preventScroll: true });
  link?.setAttribute(mark, '');
};

/** Whether the user has moved the focus to a row, or acted on the one that Back returned to. */
export const isRowFocused = (): boolean =>
  document.querySelector('[data-row]:focus-within') !== null && document.querySelector(`[${mark}]:focus`) === null;

/** The row that the keyboard begins at: that of the stream that Back has returned from, which gets the focus, else the first. */
export function useFirstRow(streams: readonly CatalogEntry[], reveal: (row: number) => void): number {
  const { router } = useExplorer();
  const row = useMemo(() => returnedRow(streams, router.address.peek().returnedFrom), []);
  useEffect(() => {
    if (row === undefined) return undefined;
    // The router has restored the scroll position by then; an order by live values may have moved the row out of view.
    const frame = requestAnimationFrame(() => {
      const [link, active] = [linkOf(row), document.activeElement];
      if (link === null || (active !== document.body && active?.id !== 'main')) return; // the user was faster
      const { top, bottom } = link.getBoundingClientRect();
      if (bottom <= 0 || top >= window.innerHeight) reveal(row);
      focusReturned(row);
    });
    const acts = ['keydown', 'pointerdown', 'focusout'] as const;
    for (const act of acts) document.addEventListener(act, unmark, true);
    return () => {
      cancelAnimationFrame(frame);
      for (const act of acts) document.removeEventListener(act, unmark, true);
    };
  }, []);
  return row ?? 0;
}

/** Moves the focus that Back has returned along with its stream: Enter must open that one, wherever a live order has put it. */
export function useFollowReturned(streams: readonly CatalogEntry[], setActive: (row: number) => void): void {
  const { router } = useExplorer();
  const from = useMemo(() => router.address.peek().returnedFrom, []);
  useEffect(() => {
    const row = returnedRow(streams, from);
    if (row === undefined || marked() === null || linkOf(row) === marked()) return undefined;
    setActive(row);
    // The row may not exist before the next frame.
    const frame = requestAnimationFrame(() => {
      if (marked() !== null) focusReturned(row);
    });
    return () => cancelAnimationFrame(frame);
  }, [streams]);
}
