// The labels of the chart's axes, as they are on its canvases in real Chromium.
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { isFull } from '../support/full-count.ts';
import { type ExplorerWorld, openExplorerTimeoutMs, openExplorerWorld, testTimeoutMs as timeout } from './world.ts';

let world: ExplorerWorld;
beforeAll(async () => {
  world = await openExplorerWorld();
}, openExplorerTimeoutMs);
afterEach(() => world.closePages());
afterAll(() => world?.close());

/** A text that a canvas has now, in its pixels. */
type DrawnText = {
  readonly text: string;
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
};
type DrawnCanvas = { readonly width: number; readonly height: number; readonly texts: readonly DrawnText[] };

/** Makes `drawnTexts()` of the page: what every canvas of the chart has, without what was cleared again. */
const recordTexts = (page: Page) =>
  page.addInitScript(() => {
    const drawn = new Map<HTMLCanvasElement, DrawnText[]>();
    const { prototype } = CanvasRenderingContext2D;
    const { fillText, fillRect, clearRect } = prototype;
    const toPixels = (context: CanvasRenderingContext2D, x: number, y: number) =>
      context.getTransform().transformPoint({ x, y });
    prototype.fillText = function (text, x, y, ...rest) {
      const { width } = this.measureText(text);
      const start = this.textAlign === 'center' ? x - width / 2 : this.textAlign === 'right' ? x - width : x;
      const { x: left, y: top } = toPixels(this, start, y - 5);
      const { x: right, y: bottom } = toPixels(this, start + width, y + 5);
      if (text !== '') drawn.set(this.canvas, [...(drawn.get(this.canvas) ?? []), { text, left, right, top, bottom }]);
      fillText.call(this, text, x, y, ...rest);
    };
    const forget = (context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void => {
      const [from, to] = [toPixels(context, x, y), toPixels(context, x + width, y + height)];
      const isKept = ({ left, right, top, bottom }: DrawnText): boolean =>
        left < from.x || top < from.y || right > to.x || bottom > to.y;
      const { canvas } = context;
      const isWhole = from.x <= 0 && from.y <= 0 && to.x >= canvas.width && to.y >= canvas.height;
      drawn.set(canvas, isWhole ? [] : (drawn.get(canvas) ?? []).filter(isKept));
    };
    prototype.clearRect = function (...rectangle) {
      forget(this, ...rectangle);
      clearRect.apply(this, rectangle);
    };
    prototype.fillRect = function (...rectangle) {
      if (this.globalCompositeOperation === 'copy') forget(this, ...rectangle);
      fillRect.apply(this, rectangle);
    };
    const drawnTexts = (): readonly DrawnCanvas[] =>
      [...drawn]
        .filter(([{ isConnected }, texts]) => isConnected && texts.length > 0)
        .map(([{ width, height }, texts]) => ({ width, height, texts }));
    Object.assign(window, { drawnTexts });
  });

const readTexts = (page: Page): Promise<readonly DrawnCanvas[]> =>
  page.evaluate(() => (window as unknown as { drawnTexts: () => readonly DrawnCanvas[] }).drawnTexts()); // as made above

/** In part: the label of a price above or below the view is not seen at all. */
const isCut = ({ width, height }: DrawnCanvas, { left, right, top, bottom }: DrawnText): boolean =>
  (left < 0 && right > 0) ||
  (left < width && right > width) ||
  (top < 0 && bottom > 0) ||
  (top < height && bottom > height);

const overlap = (one: DrawnText, other: DrawnText): boolean =>
  one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;

/** Labels that are cut off, and pairs of labels one over the other. */
const faultsOf = (canvases: readonly DrawnCanvas[]): readonly string[] =>
  canvases.flatMap((canvas) => [
    ...canvas.texts.filter((text) => isCut(canvas, text)).map(({ text }) => `${text} is cut off`),
    ...canvas.texts.flatMap((one, i) =>
      canvas.texts
        .slice(i + 1)
        .filter((other) => overlap(one, other))
        .map(({ text }) => `${one.text} and ${text} overlap`),
    ),
  ]);

const openChart = async (query: string, viewport: 'desktop' | 'phone') => {
  const opened = await world.openPage({
    path: `/streams/${world.feedIds[0]}?${query}`,
    viewport,
    signedIn: true,
    prepare: recordTexts,
  });
  await opened.page.locator('.legend-value').nth(1).waitFor();
  await expect.poll(async () => (await readTexts(opened.page)).length).toBeGreaterThan(1);
  return opened;
};

const minute = Math.floor(Date.now() / 60_000) * 60;
/** Each starts and ends at a mark of its axis. */
const views = [`view=${minute - 300}-${minute}`, `view=${minute - 60}-${minute}`];

/** On a phone, five minutes are marked by minutes, without seconds; one minute with them. */
const timeMarks: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  phone: { [views[0] as string]: /^\d\d:\d\d$/, [views[1] as string]: /^\d\d:\d\d:\d[05]$/ },
};

const queries = [...views, 'range=5m', 'range=1h'];
const updates = isFull ? 5 : 2;

test.each([
  ['desktop', isFull ? queries : queries.slice(3)],
  ['phone', isFull ? queries : queries.slice(0, 3)],
] as const)(
  'chart on a %s: no label of an axis is cut off or under another, while prices come in, and times have the marks of their span, %j',
  async (viewport, ofViewport) => {
    for (const query of ofViewport) {
      const { page } = await openChart(query, viewport);
      const newest = page.locator('.report-table tbody a').first();
      for (let i = 0; i < (query.startsWith('view') ? 1 : updates); i++) {
        const before = await newest.getAttribute('href');
        await expect.poll(() => newest.getAttribute('href')).not.toBe(before);
        expect(faultsOf(await readTexts(page)), query).toEqual([]);
      }
      const marks = timeMarks[viewport]?.[query];
      if (marks !== undefined) {
        const texts = (await readTexts(page)).flatMap((canvas) => canvas.texts.map(({ text }) => text));
        const times = texts.filter((text) => text.includes(':'));
        if (query === views[0]) expect(times.length).toBeGreaterThan(2);
        expect(
          times.filter((text) => !marks.test(text)),
          query,
        ).toEqual([]);
      }
      await page.close();
    }
  },
  timeout,
);

test(
  'chart: a comparison has the label of the newest price alone, too',
  async () => {
    const { page } = await openChart(`range=5m&compare=${world.feedIds[1]}`, 'desktop');
    await page.locator('.legend-other', { hasText: / %$/ }).waitFor();
    await expect.poll(async () => JSON.stringify(await readTexts(page))).toContain('%');
    const newest = page.locator('.report-table tbody a').first();
    for (let i = 0; i < updates; i++) {
      const before = await newest.getAttribute('href');
      await expect.poll(() => newest.getAttribute('href')).not.toBe(before);
      expect(faultsOf(await readTexts(page))).toEqual([]);
    }
  },
  timeout,
);
