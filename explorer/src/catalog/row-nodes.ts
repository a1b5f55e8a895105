// The nodes of a list's rows. A row whose props are the same is not rendered again, a new row takes over the elements of one that has scrolled away,
// and no more rows are drawn in full per frame than it has time for: the others show only name and price, or what they showed before.
import type { CatalogEntry } from '@sealpost/protocol';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ColumnName } from './columns.ts';
import type { RowScroll } from './scroll.ts';
import { assignKeys, limitNewRows, listParts } from './window.ts';

export type RowsProps<E extends HTMLElement> = {
  readonly streams: readonly CatalogEntry[];
  readonly readable: ReadonlySet<string>;
  readonly watchlist: ReadonlySet<string>;
  readonly visible: readonly ColumnName[];
  readonly scroll: RowScroll<E>;
  /** The row with the keyboard focus. */
  readonly active: number;
  /** How many rows there are, if each one says it: then all of them are rendered again when it changes. */
  readonly count?: number;
  /** By feed ID: what distinguishes a stream from the others of its pair. */
  readonly distinctions: ReadonlyMap<string, string>;
};

export type RowProps = {
  /** The key of its elements. */
  readonly slot: number;
  readonly row: number;
  readonly count: number | undefined;
  readonly stream: CatalogEntry;
  readonly visible: readonly ColumnName[];
  readonly isActive: boolean;
  readonly isReadable: boolean;
  readonly isWatched: boolean;
  readonly distinction: string | undefined;
  /** Only name and price, until there is time for the rest. */
  readonly isBrief: boolean;
};

const rowKeys = [
  'slot',
  'row',
  'count',
  'stream',
  'visible',
  'isActive',
  'isReadable',
  'isWatched',
  'distinction',
  'isBrief',
] as const satisfies readonly (keyof RowProps)[];

const isSame = (a: RowProps, b: RowProps): boolean => rowKeys.every((key) => a[key] === b[key]);

type RowNode = { readonly props: RowProps; readonly node: VNode };

/** Rows that may show another stream in full per frame. */
const rowsPerFrame = 4;
/** Rows that are created per frame; the others take over the elements of rows that are gone. */
const newRowsPerFrame = 8;

/** Whether a row can wait for a later frame: what it shows is whole and was right a moment ago, or it is new. */
const canWait = (before: RowProps | undefined, props: RowProps): boolean =>
  !props.isActive &&
  (before === undefined || (before.visible === props.visible && (before.isBrief || before.stream !== props.stream)));

/** The rows and spaces of a list. Unchanged rows are the same nodes as before, which Preact skips. */
export function useParts<E extends HTMLElement>(
  props: RowsProps<E>,
  renderRow: (props: RowProps) => VNode,
  renderSpace: (key: string, rows: number) => VNode,
): readonly VNode[] {
  const { streams, scroll, active } = props;
  const last = useRef<ReadonlyMap<number, RowNode>>(new Map());
  const drawnRows = new Map<number, RowNode>();
  const { isPrinting, drawMore } = useMoreFrames();
  // The window may be of a longer list, until the next effect.
  const rows = isPrinting ? scroll.rows : limitNewRows(scroll.rows, last.current.size, newRowsPerFrame);
  const parts = listParts(rows, active, streams.length).filter(
    (part) => part.kind === 'space' || part.row < streams.length,
  );
  const slots = assignKeys(
    new Map(
      [...last.current].map(
        ([
          row,
          {
            props: { slot },
          },
        ]) => [row, slot],
      ),
    ),
    parts.flatMap((part) => (part.kind === 'row' ? [part.row] : [])),
  );
  let left = isPrinting ? Number.POSITIVE_INFINITY : scroll.isFast ? 0 : rowsPerFrame;
  let isUnfinished = rows.end < scroll.rows.end;
  const draw = (row: number): RowNode => {
    const before = last.current.get(row);
    const next = rowOf(props, row, slots.get(row) ?? 0);
    if (before !== undefined && isSame(before.props, next)) return before;
    const isLate = canWait(before?.props, next) && left <= 0;
    left -= 1;
    if (!isLate) return { props: next, node: renderRow(next) };
    isUnfinished = true;
    const brief = { ...next, isBrief: true };
    return before ?? { props: brief, node: renderRow(brief) };
  };
  const nodes = parts.map((part) => {
    if (part.kind === 'space') return renderSpace(part.at, part.rows);
    const drawn = draw(part.row);
    drawnRows.set(part.row, drawn);
    return drawn.node;
  });
  last.current = drawnRows;
  useLayoutEffect(() => drawMore(isUnfinished && !scroll.isFast));
  return nodes;
}

const rowOf = <E extends HTMLElement>(
  { streams, readable, watchlist, distinctions, visible, active, count }: RowsProps<E>,
  row: number,
  slot: number,
): RowProps => {
  const stream = streams[row] as CatalogEntry; // the caller has checked the length
  const { feedId } = stream;
  return {
    slot,
    row,
    count,
    stream,
    visible,
    isActive: row === active,
    isReadable: readable.has(feedId),
    isWatched: watchlist.has(feedId),
    distinction: distinctions.get(feedId),
    isBrief: false,
  };
};

/** Renders again in the next frame, and at once with all rows before the page is printed. */
const useMoreFrames = () => {
  const [, render] = useState({});
  const isPrinting = useRef(false);
  const isInFrame = useRef(false);
  useEffect(() => {
    const print = ({ type }: Event): void => {
      isPrinting.current = type === 'beforeprint';
      render({});
    };
    window.addEventListener('beforeprint', print);
    window.addEventListener('afterprint', print);
    return () => {
      window.removeEventListener('beforeprint', print);
      window.removeEventListener('afterprint', print);
    };
  }, []);
  return {
    isPrinting: isPrinting.current,
    /** Called after every render. The frame that shows a render has no time for more rows: a render outside of a frame's callbacks waits for two. */
    drawMore: (isWanted: boolean): (() => void) | undefined => {
      const isRenderedInFrame = isInFrame.current;
      isInFrame.current = false;
      if (!isWanted) return undefined;
      const draw = (): void => {
        isInFrame.current = true;
        render({});
      };
      const wait = (): void => {
        frame = requestAnimationFrame(draw);
      };
      let frame = requestAnimationFrame(isRenderedInFrame ? draw : wait);
      return () => cancelAnimationFrame(frame);
    },
  };
};
