// Registers the keyboard shortcuts of a component while it is shown.
import { useEffect, useRef } from 'preact/hooks';
import { useExplorer } from '../state/explorer.ts';
import type { Shortcut } from '../state/shortcuts.ts';

/** The list behind `?` shows them under the title. `run` may change between renders; keys and texts may not. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const explorer = useExplorer();
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  useEffect(
    () =>
      explorer.shortcuts.add({
        title,
        shortcuts: latest.current.map((shortcut, i) =>
          shortcut.run === undefined ? shortcut : { ...shortcut, run: (event) => latest.current[i]?.run?.(event) },
        ),
      }),
    [explorer.shortcuts, title],
  );
}
