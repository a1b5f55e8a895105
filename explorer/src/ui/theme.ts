// Whether the page is light or dark: as the system says, until the user chooses. The choice is kept in the browser.
import { computed, effect, type ReadonlySignal, signal } from '@preact/signals';

export type Scheme = 'light' | 'dark';

export type Theme = {
  /** What is shown now. A chart draws its colours anew when this changes. */
  readonly scheme: ReadonlySignal<Scheme>;
  /** Changes to the other one. */
  readonly toggle: () => void;
  /** A colour of tokens.css as it is now, for what is drawn by script: `colour('--accent')`. */
  readonly colour: (token: string) => string;
};

/** Also read by public/theme.js, before the first paint. */
const storageKey = 'sealpost-theme';

export const createTheme = (window: Window): Theme => {
  const { document } = window;
  const root = document.documentElement;
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const systemIsDark = signal(system.matches);
  system.addEventListener('change', () => {
    systemIsDark.value = system.matches;
  });
  const choice = signal(readChoice(root.dataset.theme));
  const scheme = computed(() => choice.value ?? (systemIsDark.value ? 'dark' : 'light'));
  // The probe's colour is one that scripts can read: tokens themselves are light and dark in one.
  const probe = document.createElement('span');
  probe.hidden = true;
  root.append(probe);
  effect(() => {
    if (choice.value !== undefined) root.dataset.theme = choice.value;
  });
  return {
    scheme,
    toggle: () => {
      choice.value = scheme.peek() === 'dark' ? 'light' : 'dark';
      keep(window, choice.value);
    },
    colour: (token) => {
      probe.style.color = `var(${token})`;
      return window.getComputedStyle(probe).color;
    },
  };
};

const readChoice = (kept: string | undefined): Scheme | undefined =>
  kept === 'light' || kept === 'dark' ? kept : undefined;

const keep = ({ localStorage }: Window, choice: Scheme): void => {
  try {
    localStorage.setItem(storageKey, choice);
  } catch {
    // A browser that refuses storage: the choice holds until the page is left.
  }
};
