// Scrolling of a list: which rows exist, which are in view, and how to scroll to one.
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { growWindow, joinWindows, type RowWindow, rowsInView, rowWindow, scrollToRow, wholeMax } from './window.ts';

export type RowScroll<E extends HTMLElement> = {
  /** The element whose top is the top of the first row. */
  readonly list: RefObject<E | null>;
  readonly rows: RowWindow;
  readonly inView: readonly [number, number];
  readonly reveal: (row: number) => void;
};

type View = { readonly rows: RowWindow; readonly inView: readonly [number, number] };

/** Height of the sticky table head. */
const marginPx = 56;

/** Scrolling this many rows per frame counts as fast: rows out of view are not created until scrolling stops. */
const fastRows = 4;
const restMs = 200;

/** Follows the window's scrolling; renders again only when the rows that exist, or are in view, change. */
export const useRowScroll = <E extends HTMLElement>(count: number, rowHeight: number): RowScroll<E> => {
  const list = useRef<E>(null);
  const lastTop = useRef(0);
  const grown = useRef<RowWindow>({ first: 0, end: 0 });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const topNow = (): number => list.current?.getBoundingClientRect().top ?? 0;
  const look = (isSparing: boolean): View => {
    const size = [count, rowHeight, topNow(), window.innerHeight] as const;
    const near = rowWindow(...size, isSparing);
    grown.current = count <= wholeMax ? joinWindows(grown.current, near, count) : near;
    return { rows: grown.current, inView: rowsInView(...size) };
  };
  const [view, setView] = useState(() => look(false));
  const update = (isSparing: boolean): void => {
    const next = look(isSparing);
    setView((known) => (isSame(known, next) ? known : next));
  };
  const follow = (): void => {
    const top = topNow();
    const isFast = Math.abs(top - lastTop.current) > fastRows * rowHeight;
    lastTop.current = top;
    clearTimeout(timer.current);
    if (isFast) timer.current = setTimeout(() => update(false), restMs);
    update(isFast);
  };
  useLayoutEffect(() => update(false), [count, rowHeight]);
  useEffect(() => {
    window.addEventListener('scroll', follow, { passive: true });
    window.addEventListener('resize', follow);
    // Content above the list appears and disappears, and moves the list without scrolling.
    const moved = new ResizeObserver(() => update(false));
    const page = list.current?.closest('.catalog');
    if (page != null) moved.observe(page);
    return () => {
      moved.disconnect();
      clearTimeout(timer.current);
      window.removeEventListener('scroll', follow);
      window.removeEventListener('resize', follow);
    };
  }, [count, rowHeight]);
  useGrowth(count, view.rows, (next) => {
    grown.current = next;
    update(false);
  });
  return {
    list,
    ...view,
    reveal: (row) => {
      window.scrollBy({
        top: scrollToRow(row, rowHeight, topNow(), window.innerHeight, marginPx),
        behavior: 'instant',
      });
      update(false);
    },
  };
};

/** Grows the window of a list of up to 200 rows, one step per frame, until all of them exist; at once before the page is printed. */
const useGrowth = (count: number, { first, end }: RowWindow, grow: (next: RowWindow) => void): void => {
  const isWhole = count > wholeMax || end - first >= count;
  useEffect(() => {
    if (isWhole) return undefined;
    const frame = requestAnimationFrame(() => grow(growWindow({ first, end }, count)));
    const growNow = (): void => grow({ first: 0, end: count });
    window.addEventListener('beforeprint', growNow);
    return () => {
      cancelAnimationFrame(frame);
      window.removeEventListener('beforeprint', growNow);
    };
  }, [isWhole, first, end, count]);
};

const isSame = (a: View, b: View): boolean =>
  a.rows.first === b.rows.first &&
  a.rows.end === b.rows.end &&
  a.inView[0] === b.inView[0] &&
  a.inView[1] === b.inView[1];

/** Whether the page matches a media query. */
export const useMedia = (query: string): boolean => {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const read = (): void => setMatches(media.matches);
    read();
    media.addEventListener('change', read);
    return () => media.removeEventListener('change', read);
  }, [query]);
  return matches;
};

/** The width of an element in pixels; that of the page until it is measured. */
export const useWidth = (element: RefObject<HTMLElement | null>): number => {
  const [width, setWidth] = useState(() => document.documentElement.clientWidth);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const measure = (): void => setWidth(current.clientWidth);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return width;
};
