// The keys of the chart, while it has the focus.
import type { Shortcut } from '../../state/shortcuts.ts';
import type { ChartActions } from './actions.ts';

const keys: Readonly<Record<string, (actions: ChartActions, isShift: boolean) => void>> = {
  ArrowLeft: ({ step }, isShift) => step(-1, isShift),
  ArrowRight: ({ step }, isShift) => step(1, isShift),
  Home: ({ edge }) => edge('first'),
  End: ({ edge }) => edge('last'),
  PageUp: ({ pan }) => pan(-0.5),
  PageDown: ({ pan }) => pan(0.5),
  Enter: ({ open }) => open(),
  '+': ({ zoom }) => zoom(0.5),
  '=': ({ zoom }) => zoom(0.5),
  '-': ({ zoom }) => zoom(2),
  '0': ({ follow }) => follow(),
  Escape: ({ release }) => release(),
};

/** Runs what a key does on the chart; false if it does nothing. */
export function runKey(actions: ChartActions, { key, ctrlKey, metaKey, altKey, shiftKey }: KeyboardEvent): boolean {
  const act = ctrlKey || metaKey || altKey || !Object.hasOwn(keys, key) ? undefined : keys[key];
  act?.(actions, shiftKey);
  return act !== undefined;
}

/** For the list of shortcuts. */
export const chartShortcuts: readonly Shortcut[] = [
  { keys: ['ArrowLeft', 'ArrowRight'], text: 'Move the crosshair by one bar, with Shift by ten' },
  { keys: ['Home', 'End'], text: 'Go to the first or last bar in view' },
  { keys: ['PageUp', 'PageDown'], text: 'Move in time' },
  { keys: ['+', '-'], text: 'Zoom in or out' },
  { keys: ['Enter'], text: 'Open the report, or zoom into the candle' },
  { keys: ['0'], text: 'Return to the newest report' },
  { keys: ['Escape'], text: 'Stop pointing, or leave the full screen' },
];
