// Hooks of the catalog's list: they keep the rows in view live, and handle the keyboard.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import type { Shortcut } from '../state/shortcuts.ts';
import { writeClipboard } from '../ui/components.tsx';
import { useShortcuts } from '../ui/use-shortcuts.ts';
import { isRowFocused, linkOf, useFirstRow, useFollowReturned } from './returned-row.ts';
import type { RowScroll } from './scroll.ts';
import { createWatchedRows, restMs } from './watched-rows.ts';

/** Streams that are watched in all if rows out of view need prices too: the limit of a connection. */
const watchedMax = 100;
/** Otherwise, half as many above the view and below it as in it. */
const viewsWatched = 2;
/** How often the prices of rows that are not live are loaded again, and the last day of rows if it is older than a minute, or failed. */
const loadEveryMs = 15_000;

export type LiveNeeds = {
  /** Whether rows out of view have prices too: because they exist, or because they are sorted by them. */
  readonly isForAll: boolean;
  /** Which rows need their last day, for a change or a trend. */
  readonly days: 'none' | 'view' | 'all';
};

/** Keeps the streams in view live, and the prices of the others that need one less than half a minute old. */
export function useLiveRows(
  streams: readonly CatalogEntry[],
  readable: ReadonlySet<string>,
  { inView: [first, end], isFast }: Pick<RowScroll<HTMLElement>, 'inView' | 'isFast'>,
  { isForAll, days: daysOf }: LiveNeeds,
): void {
  const { live, days } = useExplorer();
  const rows = useMemo(() => createWatchedRows(live), [live]);
  useEffect(() => rows.close, [rows]);
  useEffect(() => {
    const viewMax = Math.min(watchedMax, viewsWatched * (end - first));
    rows.show({ streams, inView: [first, end], watchedMax: isForAll ? watchedMax : viewMax, isFast });
  }, [rows, streams, first, end, isForAll, isFast]);
  const idsOf = (some: readonly CatalogEntry[]): readonly string[] => some.map(({ feedId }) => feedId);
  const inView = idsOf(streams.slice(first, end));
  const viewKey = inView.join(' ');
  const isReadable = (feedId: string): boolean => readable.has(feedId);
  const prices = useMemo(
    () => (isForAll ? idsOf(streams).filter(isReadable) : []),
    [streams, isForAll, isForAll ? readable : undefined],
  );
  const dayIds = useMemo(
    () => (daysOf === 'none' ? [] : daysOf === 'all' ? idsOf(streams) : inView).filter(isReadable),
    [daysOf, readable, daysOf === 'all' ? streams : viewKey],
  );
  useEffect(() => {
    const load = (): void => {
      if (document.hidden) return;
      rows.refresh();
      live.refresh(prices);
      days.load(dayIds);
    };
    const timers = [setTimeout(load, restMs), setInterval(load, loadEveryMs)] as const;
    document.addEventListener('visibilitychange', load);
    return () => {
      clearTimeout(timers[0]);
      clearInterval(timers[1]);
      document.removeEventListener('visibilitychange', load);
    };
  }, [rows, prices, dayIds, live.state.value === 'live']);
}

const sortAgainMs = 2_000;

/** A pointer that has rested on a row for longer than this does not aim at it. */
const aimMs = 5_000;

/**
 * Ticks every two seconds while the order depends on live values: rows that move at every report are unreadable. Held while the user
 * has the focus on a row or aims at one: it must not become another stream just before they open it.
 */
export function useLiveTick(isOn: boolean): { readonly tick: number; readonly isPaused: boolean } {
  const [state, setState] = useState({ tick: 0, isPaused: false });
  useEffect(() => {
    if (!isOn) return undefined;
    let movedMs = Number.NEGATIVE_INFINITY;
    const move = (): void => {
      movedMs = performance.now();
    };
    const isPausedNow = (): boolean =>
      isRowFocused() || (performance.now() - movedMs < aimMs && document.querySelector('[data-row]:hover') !== null);
    const timer = setInterval(() => {
      const isPaused = isPausedNow();
      setState((last) => (isPaused && last.isPaused ? last : { tick: last.tick + (isPaused ? 0 : 1), isPaused }));
    }, sortAgainMs);
    document.addEventListener('pointermove', move, { passive: true });
    return () => {
      clearInterval(timer);
      document.removeEventListener('pointermove', move);
      setState(({ tick }) => ({ tick, isPaused: false }));
    };
  }, [isOn]);
  return state;
}

/** The row that a key moves to; -1 is the search box, undefined for other keys. */
const nextRow = (key: string, active: number, count: number): number | undefined => {
  if (key === 'ArrowDown') return Math.min(count - 1, active + 1);
  if (key === 'ArrowUp') return active - 1;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  return undefined;
};

const listKeys: readonly Shortcut[] = [
  { keys: ['/'], text: 'Search' },
  { keys: ['ArrowDown', 'ArrowUp'], text: 'Move between streams' },
  { keys: ['Enter'], text: 'Open the stream' },
  { keys: ['s'], text: 'Add the stream to the watchlist, or remove it' },
];

/** `/` focuses the search, arrows move between rows, Enter opens one, `s` stars it. Returns the row with the keyboard focus. */
export function useCatalogKeys(
  streams: readonly CatalogEntry[],
  { inView, reveal }: Pick<RowScroll<HTMLElement>, 'inView' | 'reveal'>,
  searchBox: RefObject<HTMLInputElement | null>,
  onStar: (feedId: string) => void,
): number {
  const { router, signIn, shortcuts } = useExplorer();
  useShortcuts('In the list of streams', listKeys);
  const first = useFirstRow(streams, reveal);
  const [active, setActive] = useState(first);
  const at = useRef(first); // keys may come faster than the page renders
  useFollowReturned(streams, (row) => {
    at.current = row;
    setActive(row);
  });
  const moving = useRef<number | undefined>(undefined); // the frame that will move the focus to the row
  const moveTo = (next: number): void => {
    at.current = next;
    setActive(next);
    reveal(next);
    // The row may not exist before the next frame.
    moving.current ??= requestAnimationFrame(() => {
      moving.current = undefined;
      linkOf(at.current)?.focus({ preventScroll: true });
    });
  };
  const search = (): void => {
    if (moving.current !== undefined) cancelAnimationFrame(moving.current);
    moving.current = undefined;
    searchBox.current?.focus();
  };
  const open = (stream: CatalogEntry | undefined): void => {
    if (stream !== undefined) router.go(streamHref(stream.feedId));
  };
  const press = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || signIn.isOpen.peek()) return;
    // Until that frame, a key is meant for the row that will get the focus.
    const isMoving = moving.current !== undefined;
    const focusArea = isMoving ? 'row' : focusAreaOf(event.target, searchBox.current);
    const { key } = event;
    const areLettersOn = shortcuts.areLettersOn.peek();
    if (key === '/' && areLettersOn && focusArea !== 'search' && focusArea !== 'field') search();
    else if (key === 'Enter' && focusArea === 'search') open(streams[0]);
    else if (key === 'Enter' && isMoving) open(streams[at.current]);
    else if (key === 'ArrowDown' && focusArea === 'search') moveTo(0);
    else if (key === 'ArrowDown' && focusArea === 'page') moveTo(Math.min(inView[0], streams.length - 1));
    else if (key === 's' && focusArea === 'row' && areLettersOn) {
      const stream = streams[at.current];
      if (stream !== undefined) onStar(stream.feedId);
    } else if (focusArea === 'row') {
      const next = nextRow(key, Math.min(at.current, streams.length - 1), streams.length);
      if (next === undefined) return;
      if (next < 0) search();
      else moveTo(next);
    } else return;
    event.preventDefault();
  };
  const latest = useRef(press);
  latest.current = press;
  useEffect(() => {
    const listen = (event: KeyboardEvent): void => latest.current(event);
    // The arrow keys continue from the row that was clicked.
    const follow = ({ target }: FocusEvent): void => {
      const row = target instanceof Element ? target.closest<HTMLElement>('[data-row]')?.dataset.row : undefined;
      if (row === undefined || moving.current !== undefined) return;
      at.current = Number(row);
      setActive(at.current);
    };
    document.addEventListener('keydown', listen);
    document.addEventListener('focusin', follow);
    return () => {
      document.removeEventListener('keydown', listen);
      document.removeEventListener('focusin', follow);
    };
  }, []);
  at.current = Math.max(0, Math.min(at.current, streams.length - 1));
  return Math.min(active, streams.length - 1);
}

/** Where a key was pressed. */
const focusAreaOf = (
  target: EventTarget | null,
  searchBox: HTMLInputElement | null,
): 'search' | 'field' | 'row' | 'page' | 'elsewhere' => {
  if (!(target instanceof HTMLElement)) return 'elsewhere';
  if (target === searchBox) return 'search';
  if (target.matches('input, select, textarea, [contenteditable]')) return 'field';
  if (target.closest('[data-row]') !== null) return 'row';
  return target === document.body || target.id === 'main' ? 'page' : 'elsewhere';
};

const copiedMs = 1_600;

const copy = async (button: HTMLElement): Promise<void> => {
  const state = await writeClipboard(button.dataset.copy ?? '');
  button.classList.add(state);
  button.title = state === 'done' ? 'Copied' : 'Your browser blocked copying. Select the text on the stream’s page';
  setTimeout(() => {
    button.classList.remove(state);
    button.title = 'Copy feed ID';
  }, copiedMs);
};

/** One click listener for the copy buttons and stars of all rows. */
export function useRowClicks(onStar: (feedId: string) => void): void {
  const latest = useRef(onStar);
  latest.current = onStar;
  useEffect(() => {
    const click = (event: Event): void => {
      const target = event.target instanceof Element ? event.target : null;
      const button = target?.closest<HTMLElement>('[data-copy], [data-star]') ?? null;
      if (button === null) return;
      event.preventDefault();
      if (button.dataset.star === undefined) void copy(button);
      else latest.current(button.dataset.star);
    };
    document.addEventListener('click', click);
    return () => document.removeEventListener('click', click);
  }, []);
}
