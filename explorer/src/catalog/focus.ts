// Keeps the keyboard focus in the list when the focused element is removed: a chip, a button, a row. Without this the browser moves it to the top of the
// page.
import type { RefObject } from 'preact';
import { useEffect } from 'preact/hooks';

/** The focused element, and its place among the buttons of its list, for the moment when it is gone. */
type Focused = { readonly element: Element; readonly chip: number };

const chips = (page: Element): readonly HTMLElement[] => [...page.querySelectorAll<HTMLElement>('.chips button')];

/** Where the focus goes: from a chip to the next one, from a row to the row that is now active, otherwise to the search box. */
const nextFocus = (page: Element, { chip }: Focused): HTMLElement | null => {
  const left = chips(page);
  if (chip >= 0)
    return left[Math.min(chip, left.length - 1)] ?? page.querySelector<HTMLElement>('[aria-controls=filters]');
  return (
    page.querySelector<HTMLElement>('[data-row] a[tabindex="0"]') ??
    page.querySelector<HTMLElement>('#search') ??
    document.getElementById('main')
  );
};

export const useKeptFocus = (page: RefObject<HTMLElement | null>): void => {
  useEffect(() => {
    const { current } = page;
    if (current === null) return undefined;
    let focused: Focused | undefined;
    const remember = ({ target }: FocusEvent): void => {
      if (target instanceof HTMLElement) focused = { element: target, chip: chips(current).indexOf(target) };
    };
    const forget = (): void =>
      queueMicrotask(() => {
        if (focused?.element.isConnected === true && document.activeElement === document.body) focused = undefined;
      });
    const check = (): void => {
      if (focused === undefined || focused.element.isConnected || document.activeElement !== document.body) return;
      const next = nextFocus(current, focused);
      focused = undefined;
      next?.focus({ preventScroll: true });
    };
    const observer = new MutationObserver(check);
    observer.observe(current, { childList: true, subtree: true });
    current.addEventListener('focusin', remember);
    current.addEventListener('focusout', forget);
    return () => {
      observer.disconnect();
      current.removeEventListener('focusin', remember);
      current.removeEventListener('focusout', forget);
    };
  }, []);
};
