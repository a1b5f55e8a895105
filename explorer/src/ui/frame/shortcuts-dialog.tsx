// The list of keyboard shortcuts: those of the page first, then those of all pages.
import { useEffect, useRef } from 'preact/hooks';
import { useExplorer } from '../../state/explorer.ts';
import type { Shortcut } from '../../state/shortcuts.ts';

const keyNames: Readonly<Record<string, string>> = {
  ArrowLeft: '←',
  ArrowRight: '→',
  ArrowUp: '↑',
  ArrowDown: '↓',
  Escape: 'Esc',
  ' ': 'Space',
};

/** A visible way to the list, for those who do not know its key. */
export function ShortcutsButton() {
  const { shortcuts } = useExplorer();
  return (
    <button type="button" class="quiet footer-button" onClick={shortcuts.openList}>
      Keyboard shortcuts <kbd>?</kbd>
    </button>
  );
}

export function ShortcutsDialog() {
  const { shortcuts } = useExplorer();
  const dialog = useRef<HTMLDialogElement>(null);
  const isOpen = shortcuts.isListOpen.value;
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
    else dialog.current?.close();
  }, [isOpen]);
  return (
    <dialog class="shortcuts" ref={dialog} aria-labelledby="shortcuts-title" onClose={shortcuts.closeList}>
      {isOpen && <ShortcutsList />}
    </dialog>
  );
}

const ShortcutsList = () => {
  const { shortcuts } = useExplorer();
  return (
    <div class="stack">
      <div class="dialog-head">
        <h2 id="shortcuts-title">Keyboard shortcuts</h2>
        <button type="button" onClick={shortcuts.closeList}>
          Close
        </button>
      </div>
      {shortcuts.groups.value.map((group) => (
        <section key={group.title} aria-label={group.title}>
          <h3>{group.title}</h3>
          <dl class="shortcut-list">
            {group.shortcuts.map((shortcut) => (
              <ShortcutRow key={shortcut.text} shortcut={shortcut} />
            ))}
          </dl>
        </section>
      ))}
      <label class="check">
        <input
          type="checkbox"
          checked={shortcuts.areLettersOn.value}
          onChange={(event) => shortcuts.setLettersOn(event.currentTarget.checked)}
        />
        Use keys of a single character
      </label>
    </div>
  );
};

const ShortcutRow = ({ shortcut: { keys, text } }: { readonly shortcut: Shortcut }) => (
  <div>
    <dt>
      {keys.map((key) => (
        <kbd key={key}>{keyNames[key] ?? key}</kbd>
      ))}
    </dt>
    <dd>{text}</dd>
  </div>
);
