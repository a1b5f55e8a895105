// Scrolling of a list: which rows exist, which are in view, and how to scroll to one.
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { growWindow, joinWindows, type RowWindow, rowsInView, rowWindow, scrollToRow, wholeMax } from './window.ts';

export type RowScroll<E extends HTMLElement> = {
  /** The element whose top is the top of the first row. */
  readonly list: RefObject<E | null>;
  readonly rows: RowWindow;
  readonly inView: readonly [number, number];
  /** While it scrolls fast, new rows show only name and price. */
  readonly isFast: boolean;
  readonly reveal: (row: number) => void;
};

/** Where the list was when it was last measured: measuring makes the browser lay out the page at once. */
type ScrollPosition = { readonly top: number; readonly height: number; readonly isFast: boolean };

/** Height of the sticky table head. */
const marginPx = 56;

/** Scrolling this many rows per frame counts as fast: rows out of view are not created, and new rows are brief, until scrolling stops. */
const fastRows = 4;
const restMs = 100;

/** Follows the window's scrolling; renders again only when the rows that exist, or are in view, change. */
export function useRowScroll<E extends HTMLElement>(count: number, rowHeight: number): RowScroll<E> {
  const list = useRef<E>(null);
  const lastTop = useRef(0);
  const grown = useRef<RowWindow>({ first: 0, end: 0 });
  const rest = useRest(() => update(false));
  const [position, setPosition] = useState<ScrollPosition>({ top: 0, height: window.innerHeight, isFast: false });
  const near = nearOf(position, count, rowHeight);
  grown.current = count <= wholeMax ? joinWindows(grown.current, near.rows, count) : near.rows;
  const measure = (): number => {
    lastTop.current = list.current?.getBoundingClientRect().top ?? 0;
    return lastTop.current;
  };
  const update = (isFast: boolean): void => {
    const next = { top: lastTop.current, height: window.innerHeight, isFast };
    setPosition((last) =>
      isSame(nearOf(last, count, rowHeight), nearOf(next, count, rowHeight)) && last.isFast === isFast ? last : next,
    );
  };
  const follow = (): void => {
    const before = lastTop.current;
    const isFast = Math.abs(measure() - before) > fastRows * rowHeight;
    rest.put(isFast);
    update(isFast);
  };
  const look = (): void => {
    measure();
    update(false);
  };
  useLayoutEffect(look, [rowHeight]); // a list of another length begins at the same place
  useEffect(() => {
    window.addEventListener('scroll', follow, { passive: true });
    window.addEventListener('resize', look);
    // Content above the list appears and disappears, and moves the list without scrolling.
    const moved = new ResizeObserver(look);
    const page = list.current?.closest('.catalog');
    if (page != null) moved.observe(page);
    return () => {
      moved.disconnect();
      rest.put(false);
      window.removeEventListener('scroll', follow);
      window.removeEventListener('resize', look);
    };
  }, [count, rowHeight]);
  useGrowth(count, grown.current, (next) => {
    grown.current = next;
    setPosition((last) => ({ ...last }));
  });
  return {
    list,
    rows: grown.current,
    inView: near.inView,
    isFast: position.isFast,
    reveal: (row) => {
      const by = scrollToRow(row, rowHeight, measure(), window.innerHeight, marginPx);
      window.scrollBy({ top: by, behavior: 'instant' });
      look();
    },
  };
}

/**
 * Calls back when scrolling has stopped: in the first frame after a pause that no scroll event comes with. A busy machine delays frames for longer than
 * the pause, and rows drawn in full in the middle of a scroll would delay the next one further.
 */
const useRest = (act: () => void) => {
  const latest = useRef(act);
  latest.current = act;
  const waiting = useRef<{ timer?: ReturnType<typeof setTimeout>; frame?: number }>({});
  return {
    put: (isWanted: boolean): void => {
      const { timer, frame } = waiting.current;
      clearTimeout(timer);
      if (frame !== undefined) cancelAnimationFrame(frame);
      waiting.current = {};
      if (!isWanted) return;
      const next: { timer?: ReturnType<typeof setTimeout>; frame?: number } = {};
      next.timer = setTimeout(() => {
        next.frame = requestAnimationFrame(() => latest.current());
      }, restMs);
      waiting.current = next;
    },
  };
};

/** The rows around the view, and in it. */
const nearOf = ({ top, height, isFast }: ScrollPosition, count: number, rowHeight: number) => ({
  rows: rowWindow(count, rowHeight, top, height, isFast),
  inView: rowsInView(count, rowHeight, top, height),
});

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

const isSame = (a: ReturnType<typeof nearOf>, b: ReturnType<typeof nearOf>): boolean =>
  a.rows.first === b.rows.first &&
  a.rows.end === b.rows.end &&
  a.inView[0] === b.inView[0] &&
  a.inView[1] === b.inView[1];

/** Whether the page matches a media query. */
export function useMedia(query: string): boolean {
  const [matches, setMatches] = useState(() => window.matchMedia(query).matches);
  useEffect(() => {
    const media = window.matchMedia(query);
    const read = (): void => setMatches(media.matches);
    read();
    media.addEventListener('change', read);
    return () => media.removeEventListener('change', read);
  }, [query]);
  return matches;
}

/** The width of an element in pixels; that of the page until it is measured. */
export function useWidth(element: RefObject<HTMLElement | null>): number {
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
}
