// The keyboard shortcuts: components register theirs while they are shown, and the list behind `?` shows what is registered.
import { type ReadonlySignal, signal } from '@preact/signals';
import type { BrowserStorage } from './settings/browser-storage.ts';
import { createStoredSetting } from './settings/stored-setting.ts';

export type Shortcut = {
  /** As in KeyboardEvent.key, any of them: `/`, `t`, `ArrowLeft`. Letters in lower case. */
  readonly keys: readonly string[];
  /** What it does, as an imperative: `Search`. */
  readonly text: string;
  /** Called unless the user is typing or a dialog is open. Absent if the component handles the key itself. */
  readonly run?: (event: KeyboardEvent) => void;
};

export type ShortcutGroup = {
  /** `In the list of streams`, `On all pages`. */
  readonly title: string;
  readonly shortcuts: readonly Shortcut[];
};

export type Shortcuts = {
  /** The last registered group first: those of the page before those of all pages. */
  readonly groups: ReadonlySignal<readonly ShortcutGroup[]>;
  /** Registers a group until the returned function is called. If two have the same key, the last registered one runs. */
  readonly add: (group: ShortcutGroup) => () => void;
  /** The list of shortcuts, a dialog. */
  readonly isListOpen: ReadonlySignal<boolean>;
  readonly openList: () => void;
  readonly closeList: () => void;
  /** Whether keys of a single character run anything; speech input can press them by accident. Kept in the browser. */
  readonly areLettersOn: ReadonlySignal<boolean>;
  readonly setLettersOn: (areOn: boolean) => void;
};

const storageKey = 'sealpost-shortcuts';

export function createShortcuts(document: Document, storage: BrowserStorage): Shortcuts {
  const groups = signal<readonly ShortcutGroup[]>([]);
  const isListOpen = signal(false);
  const setting = createStoredSetting(storage, storageKey, (stored) => stored !== false);
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.shiftKey ? event.key : lowerCase(event.key);
    if (key.length === 1 && key !== '?' && !setting.value.peek()) return;
    if (isTaken(event.target, key) || document.querySelector('dialog[open]') !== null) return;
    const found = groups
      .peek()
      .flatMap(({ shortcuts }) => shortcuts)
      .find(({ keys, run }) => run !== undefined && keys.includes(key));
    if (found === undefined) return;
    event.preventDefault();
    found.run?.(event);
  });
  return {
    groups,
    add: (group) => {
      groups.value = [group, ...groups.peek()];
      return () => {
        groups.value = groups.peek().filter((other) => other !== group);
      };
    },
    isListOpen,
    openList: () => {
      isListOpen.value = true;
    },
    closeList: () => {
      isListOpen.value = false;
    },
    areLettersOn: setting.value,
    setLettersOn: (areOn) => setting.set(areOn),
  };
}

const lowerCase = (key: string): string => (key.length === 1 ? key.toLowerCase() : key);

/** Whether the element needs the key itself: to type, to choose an option, or to scroll. */
const isTaken = (target: EventTarget | null, key: string): boolean => {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable || target.matches('select, textarea')) return true;
  if (key.length === 1) return target.matches('input:not([type=checkbox], [type=radio], [type=button], [type=range])');
  if (target.matches('input, [role=tab], [role=slider], [role=option], [role=menuitem], [role=gridcell]')) return true;
  return key.startsWith('Arrow') && target.tabIndex === 0 && target.scrollWidth > target.clientWidth;
};
