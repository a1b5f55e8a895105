// Hooks of the catalog's list: they keep the rows in view live, and handle the keyboard.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import type { Shortcut } from '../state/shortcuts.ts';
import { useShortcuts } from '../ui/shortcuts.ts';
import type { RowScroll } from './scroll.ts';

/** Rows are watched once the list has not scrolled for this long, so that scrolling past a row loads no price. */
const restMs = 200;
/** Sorted by price or age, streams out of view are watched too, up to this many in all. */
const watchedMax = 100;

/** Keeps the streams in view live. */
export const useLiveRows = (
  streams: readonly CatalogEntry[],
  [first, end]: readonly [number, number],
  isLiveOrder: boolean,
): void => {
  const { live } = useExplorer();
  const inView = streams.slice(first, end);
  const others = isLiveOrder ? streams.filter((_, i) => i < first || i >= end) : [];
  const watched = [...inView, ...others.slice(0, Math.max(0, watchedMax - inView.length))].map(({ feedId }) => feedId);
  // Sorted, because their order does not matter.
  const key = watched.toSorted().join(' ');
  const unwatch = useRef<() => void>(() => {});
  useEffect(() => {
    const timer = setTimeout(() => {
      const before = unwatch.current;
      unwatch.current = key === '' ? () => {} : live.watch(key.split(' '));
      before(); // after the new watch, so that streams in both stay as they are
    }, restMs);
    return () => clearTimeout(timer);
  }, [live, key]);
  useEffect(() => () => unwatch.current(), []);
};

const sortAgainMs = 2_000;

/** Ticks every two seconds while the order depends on live values: rows that move at every report are unreadable. */
export const useLiveTick = (isOn: boolean): number => {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => setTick((count) => count + 1), sortAgainMs);
    return () => clearInterval(timer);
  }, [isOn]);
  return tick;
};

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
];

/** `/` focuses the search, arrows move between rows, Enter opens one. Returns the row with the keyboard focus. */
export const useCatalogKeys = (
  streams: readonly CatalogEntry[],
  { inView, reveal }: Pick<RowScroll<HTMLElement>, 'inView' | 'reveal'>,
  searchBox: RefObject<HTMLInputElement | null>,
): number => {
  const { router, signIn } = useExplorer();
  useShortcuts('In the list of streams', listKeys);
  const [active, setActive] = useState(0);
  const at = useRef(0); // keys may come faster than the page renders
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
    const place = isMoving ? 'row' : placeOf(event.target, searchBox.current);
    const { key } = event;
    if (key === '/' && place !== 'search' && place !== 'field') search();
    else if (key === 'Enter' && place === 'search') open(streams[0]);
    else if (key === 'Enter' && isMoving) open(streams[at.current]);
    else if (key === 'ArrowDown' && place === 'search') moveTo(0);
    else if (key === 'ArrowDown' && place === 'page') moveTo(Math.min(inView[0], streams.length - 1));
    else if (place === 'row') {
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
    document.addEventListener('keydown', listen);
    return () => document.removeEventListener('keydown', listen);
  }, []);
  return Math.min(active, streams.length - 1);
};

const linkOf = (row: number): HTMLElement | null => document.querySelector<HTMLElement>(`[data-row="${row}"] a`);

/** Where a key was pressed. */
const placeOf = (
  target: EventTarget | null,
  searchBox: HTMLInputElement | null,
): 'search' | 'field' | 'row' | 'page' | 'elsewhere' => {
  if (!(target instanceof HTMLElement)) return 'elsewhere';
  if (target === searchBox) return 'search';
  if (target.matches('input, select, textarea, [contenteditable]')) return 'field';
  if (target.closest('[data-row]') !== null) return 'row';
  return target === document.body || target.id === 'main' ? 'page' : 'elsewhere';
};
