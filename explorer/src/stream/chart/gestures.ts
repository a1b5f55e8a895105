// Pointer and wheel on the chart: pointing, clicking, dragging and pinching. A plain wheel and a vertical swipe stay the page's.

export type GestureHandlers = {
  /** The pointer is at this share of the plot's width. */
  readonly onPoint: (share: number) => void;
  readonly onLeave: () => void;
  /** A click without a drag. A finger points first; its second tap on the same bar clicks. */
  readonly onClick: (share: number, isTouch: boolean) => void;
  /** Dragged by this share of the width since the last call. */
  readonly onPan: (share: number) => void;
  /** `factor` less than 1 zooms in. */
  readonly onZoom: (factor: number, share: number) => void;
};

/** A click may move by this much. */
const dragPixels = 5;
/** Wheel pixels that double the length of time in view. */
const wheelPixels = 240;

type Point = { readonly x: number; readonly y: number };

const distanceOf = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y);

/** The two fingers of a pinch. */
const pairOf = (points: ReadonlyMap<number, Point>): readonly [Point, Point] | undefined => {
  const [one, other] = [...points.values()];
  return one === undefined || other === undefined ? undefined : [one, other];
};

type Size = { readonly width: number; readonly height: number };

const isInside = ({ x, y }: Point, { width, height }: Size): boolean => x >= 0 && y >= 0 && x <= width && y <= height;

const pointIn = (element: HTMLElement, { clientX, clientY }: MouseEvent): Point => {
  const { left, top } = element.getBoundingClientRect();
  return { x: clientX - left, y: clientY - top };
};

/** Adds up what a wheel does within a frame: it may turn many times, and each zoom may draw other data. */
const createWheelZoom = (onZoom: GestureHandlers['onZoom'], ended: AbortSignal) => {
  let waiting: { factor: number; share: number } | undefined;
  const run = (): void => {
    const next = waiting;
    waiting = undefined;
    if (next !== undefined && !ended.aborted) onZoom(next.factor, next.share);
  };
  return (factor: number, share: number): void => {
    if (waiting === undefined) requestAnimationFrame(run);
    waiting = { factor: factor * (waiting?.factor ?? 1), share };
  };
};

/** Listens on an element until the returned function is called; `plotWidth` is the width that shares are of. */
export function listenToGestures(
  element: HTMLElement,
  plotWidth: () => number,
  { onPoint, onLeave, onClick, onPan, onZoom }: GestureHandlers,
): () => void {
  const down = new Map<number, Point>();
  let pressed: Point | undefined;
  let isDrag = false;
  const listeners = new AbortController();
  const options = { signal: listeners.signal };
  const pointOf = (event: MouseEvent): Point => pointIn(element, event);
  const shareOf = ({ x }: Point): number => Math.min(1, Math.max(0, x / Math.max(1, plotWidth())));
  const drag = (id: number, point: Point): void => {
    const before = down.get(id);
    const pair = pairOf(down);
    down.set(id, point);
    if (before === undefined || pressed === undefined) return;
    const next = pairOf(down);
    if (pair !== undefined && next !== undefined) {
      isDrag = true;
      const factor = Math.max(1, distanceOf(...pair)) / Math.max(1, distanceOf(...next));
      onZoom(factor, shareOf({ x: (next[0].x + next[1].x) / 2, y: 0 }));
      return;
    }
    isDrag ||= distanceOf(point, pressed) > dragPixels;
    if (isDrag) onPan((point.x - before.x) / Math.max(1, plotWidth()));
  };
  const up = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId)) return;
    const point = pointOf(event);
    if (down.size > 0) return;
    const isClick = !isDrag && event.type === 'pointerup' && isInside(point, element.getBoundingClientRect());
    pressed = undefined;
    isDrag = false;
    if (isClick) onClick(shareOf(point), event.pointerType === 'touch');
  };
  const press = (event: PointerEvent): void => {
    if (event.pointerType === 'mouse' && event.button !== 0) return;
    pressed = pointOf(event);
    down.set(event.pointerId, pressed);
    element.setPointerCapture(event.pointerId);
  };
  const move = (event: PointerEvent): void => {
    const point = pointOf(event);
    if (down.has(event.pointerId)) drag(event.pointerId, point);
    if (event.pointerType !== 'touch' && !isDrag) onPoint(shareOf(point));
  };
  element.addEventListener('pointerdown', press, options);
  element.addEventListener('pointermove', move, options);
  for (const type of ['pointerup', 'pointercancel'] as const) element.addEventListener(type, up, options);
  element.addEventListener('pointerleave', ({ pointerType }) => pointerType !== 'touch' && onLeave(), options);
  // Browsers report a pinch on a touchpad as a wheel with ctrl.
  const zoomByWheel = createWheelZoom(onZoom, listeners.signal);
  const onWheel = (event: WheelEvent): void => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomByWheel(2 ** (event.deltaY / wheelPixels), shareOf(pointOf(event)));
  };
  element.addEventListener('wheel', onWheel, { ...options, passive: false });
  return () => listeners.abort();
}
