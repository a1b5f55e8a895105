import { afterEach, assert, beforeEach, expect, test, vi } from 'vitest';
import { createDisplay, reportsPerFrame, showEveryMs } from './report-display.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A page whose frames the test draws. */
const createPage = () => {
  const waiting = new Set<() => void>();
  const page = { isHidden: false };
  return {
    page,
    frames: {
      next: (run: () => void) => {
        waiting.add(run);
        return () => void waiting.delete(run);
      },
      areOff: () => page.isHidden,
    },
    drawFrame: (): void => {
      const runs = [...waiting];
      waiting.clear();
      for (const run of runs) run();
    },
  };
};

const createStreams = (count: number, isOnPage: boolean) =>
  Array.from({ length: count }, (_, i) => ({ name: `s${i}`, isOnPage, shownMs: Number.NEGATIVE_INFINITY }));

const open = () => {
  const { page, frames, drawFrame } = createPage();
  const shown: string[] = [];
  const display = createDisplay<ReturnType<typeof createStreams>[number]>(({ name }) => shown.push(name), frames);
  return { page, drawFrame, shown, display };
};

test('display: reports that arrive together are shown a few per frame, in their order, all of them', () => {
  const { drawFrame, shown, display } = open();
  const streams = createStreams(2 * reportsPerFrame + 1, true);
  for (const one of streams) display.show(one);
  expect(shown).toEqual([]);
  drawFrame();
  expect(shown).toHaveLength(reportsPerFrame);
  drawFrame();
  drawFrame();
  expect(shown).toEqual(streams.map(({ name }) => name));
});

test('display: what is not on the page, and everything of a hidden page, is known at once', () => {
  const { page, shown, display } = open();
  for (const one of createStreams(100, false)) display.show(one);
  expect(shown).toHaveLength(100);
  page.isHidden = true;
  for (const one of createStreams(100, true)) display.show(one);
  expect(shown).toHaveLength(200);
});

test('display: a page that is hidden before its next frame is not left without the report', () => {
  const { page, shown, display } = open();
  const [first, ...others] = createStreams(2, true);
  if (first !== undefined) display.show(first);
  page.isHidden = true;
  for (const one of others) display.show(one);
  expect(shown).toEqual(['s1']);
  vi.advanceTimersByTime(showEveryMs);
  expect(shown).toEqual(['s1', 's0']);
});

test('display: a stream is shown five times a second at most, its last report too', () => {
  const { drawFrame, shown, display } = open();
  const [one] = createStreams(1, true);
  assert(one !== undefined);
  for (let ms = 0; ms < 1_000; ms += 20) {
    display.show(one);
    drawFrame();
    vi.advanceTimersByTime(20);
  }
  expect(shown.length).toBeGreaterThanOrEqual(4);
  expect(shown.length).toBeLessThanOrEqual(5);
  const before = shown.length;
  display.show(one);
  vi.advanceTimersByTime(showEveryMs);
  drawFrame();
  expect(shown).toHaveLength(before + 1);
});

test('display: what was forgotten is not shown', () => {
  const { drawFrame, shown, display } = open();
  for (const one of createStreams(3, true)) display.show(one);
  display.forget();
  drawFrame();
  vi.advanceTimersByTime(showEveryMs);
  expect(shown).toEqual([]);
});
