// Panels that a button opens below itself: filters, columns, programs, the form of a request.
import { useEffect, useRef } from 'preact/hooks';

const buttonSelector = (id: string): string => `[aria-controls="${id}"]`;

/** Focuses the button that opens a panel. */
export const focusPanelButton = (id: string): void => document.querySelector<HTMLElement>(buttonSelector(id))?.focus();

/** Escape in the open panel, or on its button, closes it, and the focus returns to the button. Without an ID, no panel is open. */
export function useEscape(id: string | undefined, close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (id === undefined) return undefined;
    const press = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented || !(event.target instanceof Element)) return;
      if (event.target.closest(`#${id}, ${buttonSelector(id)}`) === null) return;
      event.preventDefault();
      focusPanelButton(id);
      latest.current();
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, [id]);
}
