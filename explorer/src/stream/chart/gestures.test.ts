import { expect, test } from 'vitest';
import { listenToGestures } from './gestures.ts';

/** An element of 200 by 100 pixels, and what its gestures did. */
const listening = () => {
  const done: string[] = [];
  const element = Object.assign(new EventTarget(), {
    getBoundingClientRect: () => ({ left: 10, top: 20, width: 200, height: 100 }),
    setPointerCapture: () => {},
  }) as unknown as HTMLElement; // what gestures use of one
  listenToGestures(element, () => 200, {
    onPoint: () => {},
    onLeave: () => {},
    onClick: (share) => done.push(`click ${share}`),
    onPan: (share) => done.push(`pan ${share}`),
    onZoom: () => {},
  });
  const send = (type: string, clientX: number, clientY: number): void => {
    const parts = { clientX, clientY, pointerId: 1, pointerType: 'mouse', button: 0 };
    element.dispatchEvent(Object.assign(new Event(type), parts));
  };
  return { done, send };
};

test('gestures: a press that moves a little is a click', () => {
  const { done, send } = listening();
  send('pointerdown', 60, 50);
  send('pointermove', 62, 53);
  send('pointerup', 60, 53);
  expect(done).toEqual(['click 0.25']);
});

test('gestures: a drag straight down is not a click, not even if it comes back', () => {
  const { done, send } = listening();
  send('pointerdown', 60, 50);
  send('pointermove', 60, 90);
  send('pointermove', 60, 50);
  send('pointerup', 60, 50);
  expect(done.filter((text) => text.startsWith('click'))).toEqual([]);
});

test('gestures: a release outside is not a click, and the next press is one again', () => {
  const { done, send } = listening();
  send('pointerdown', 60, 118);
  send('pointerup', 60, 122);
  expect(done).toEqual([]);
  send('pointerdown', 60, 50);
  send('pointerup', 60, 50);
  expect(done).toEqual(['click 0.25']);
});
