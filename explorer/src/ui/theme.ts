// The light or dark theme: the system's, unless the user chooses one. The choice is stored in the browser.
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';
import type { BrowserStorage } from '../state/settings/browser-storage.ts';

export type Scheme = 'light' | 'dark';

export type Theme = {
  /** The current one. Charts redraw when it changes. */
  readonly scheme: ReadonlySignal<Scheme>;
  /** Switches to the other one. */
  readonly toggle: () => void;
  /** The current value of a color in tokens.css, for scripts that draw: `color('--accent')`. */
  readonly color: (token: string) => string;
};

/** Also read by public/start.js, before the first paint. */
const storageKey = 'sealpost-theme';

export function createTheme(window: Window, storage: BrowserStorage): Theme {
  const { document } = window;
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const systemIsDark = signal(system.matches);
  system.addEventListener('change', () => {
    systemIsDark.value = system.matches;
  });
  // start.js, which reads the choice too, may not have arrived.
  const choice = signal(readChoice(root.dataset.theme) ?? readChoice(storage.read(storageKey)));
  const scheme = computed(() => choice.value ?? (systemIsDark.value ? 'dark' : 'light'));
  // The computed color of a sample element, because a token itself contains both the light and the dark color.
  const sampleElement = document.createElement('span');
  sampleElement.hidden = true;
  root.append(sampleElement);
  effect(() => {
    if (choice.value !== undefined) root.dataset.theme = choice.value;
  });
  return {
    scheme,
    toggle: () => {
      choice.value = scheme.peek() === 'dark' ? 'light' : 'dark';
      storage.write(storageKey, choice.value);
    },
    color: (token) => {
      sampleElement.style.color = `var(${token})`;
      return window.getComputedStyle(sampleElement).color;
    },
  };
}

const readChoice = (stored: string | null | undefined): Scheme | undefined =>
  stored === 'light' || stored === 'dark' ? stored : undefined;
