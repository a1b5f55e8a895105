// What the catalog's list does besides showing: it keeps the rows in view live, and follows the keyboard.
import type { CatalogEntry } from '@sealpost/protocol';
import type { RefObject } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import { streamHref } from '../state/router.ts';
import type { RowScroll } from './scroll.ts';

/** The list must have rested so long before what is in view is watched: who scrolls past wants no price. */
const restMs = 200;
/** Where the order is by price or age, streams out of view are watched too, so many in all. */
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
  // The order among them makes no difference.
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

/** Counts up while the order depends on what comes in: rows that change places at each report could not be read. */
export const useLiveTick = (isOn: boolean): number => {
  const [tick, setTick] = useState(0);
  useEffect(() => {
    if (!isOn) return undefined;
    const timer = setInterval(() => setTick((count) => count + 1), sortAgainMs);
    return () => clearInterval(timer);
  }, [isOn]);
  return tick;
};

/** The row that a key leads to; -1 is the search box, undefined where the key is none of ours. */
const nextRow = (key: string, active: number, count: number): number | undefined => {
  if (key === 'ArrowDown') return Math.min(count - 1, active + 1);
  if (key === 'ArrowUp') return active - 1;
  if (key === 'Home') return 0;
  if (key === 'End') return count - 1;
  return undefined;
};

/** `/` searches, arrows move the row, Enter opens it. Tells the row that the keyboard is at. */
export const useCatalogKeys = (
  streams: readonly CatalogEntry[],
  { inView, reveal }: Pick<RowScroll<HTMLElement>, 'inView' | 'reveal'>,
  searchBox: RefObject<HTMLInputElement | null>,
): number => {
  const { router, signIn } = useExplorer();
  const [active, setActive] = useState(0);
  const at = useRef(0); // keys may come faster than the page is rendered
  const moving = useRef<number | undefined>(undefined); // the frame that takes the focus to the row
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
    // Between two frames a key is meant for the row that the focus is on its way to.
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

/** Where a key is pressed, as far as it matters here. */
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
