// Keeps the keyboard focus in the page: when the focused element disappears or is disabled, the focus moves to what took its place, or to
// the nearest element around it. Browsers move it to <body>, where the next Tab starts over at the top.

/** An element around the focused one, and which of its children leads to it. */
type Step = { readonly element: Element; readonly index: number };

const focusable =
  'a[href], button:not(:disabled), summary, input:not(:disabled), select:not(:disabled), textarea:not(:disabled), [tabindex]';

/** Watches the elements in `root`; `main` gets the focus if nothing near is left. */
export function keepFocus(document: Document, root: Element): void {
  let last: HTMLElement | undefined;
  let path: readonly Step[] = [];
  /** The element that stands in for `last` while it is disabled. */
  let standIn: Element | undefined;
  let isMoving = false;
  /** Browsers notice a hidden or disabled element only with the next frame. */
  const isLost = (element: HTMLElement): boolean => {
    const active = document.activeElement;
    return active === document.body ? !isUsable(element) : active instanceof HTMLElement && !isUsable(active);
  };
  const settle = (changes: readonly MutationRecord[]): void => {
    if (last === undefined) return;
    // Only these attributes hide or disable what has the focus. To ask whether it is visible makes the browser compute styles at once, at every key.
    const isKept = document.activeElement !== document.body && standIn === undefined;
    if (isKept && changes.every(({ type }) => type === 'childList')) return;
    if (standIn !== undefined && document.activeElement === standIn && isUsable(last)) {
      standIn = undefined;
      last.focus({ preventScroll: true });
      return;
    }
    if (!isLost(last)) return;
    isMoving = true;
    standIn = focusNear(path) ?? focusElement(document.getElementById('main'));
    isMoving = false;
  };
  document.addEventListener('focusin', ({ target }) => {
    if (!(target instanceof HTMLElement) || isMoving || target === standIn) return;
    last = target;
    path = pathOf(target, root);
    standIn = undefined;
  });
  // A click beside everything takes the focus away on purpose.
  document.addEventListener('pointerdown', ({ target }) => {
    if (target instanceof Element && target.closest(focusable) === null) last = undefined;
  });
  new MutationObserver(settle).observe(root, {
    childList: true,
    subtree: true,
    attributeFilter: ['disabled', 'hidden', 'open'],
  });
}

const isUsable = (element: HTMLElement): boolean =>
  element.isConnected && !element.matches(':disabled') && element.checkVisibility();

const pathOf = (element: Element, root: Element): readonly Step[] => {
  const steps: Step[] = [];
  for (let child = element; child !== root && child.parentElement !== null; child = child.parentElement)
    steps.push({ element: child.parentElement, index: [...child.parentElement.children].indexOf(child) });
  return steps;
};

const focusNear = (path: readonly Step[]): Element | undefined => {
  const step = path.find(({ element }) => element.isConnected && element.checkVisibility());
  if (step === undefined || step.element.id === 'app') return undefined;
  const { children } = step.element;
  const successor = children[Math.min(step.index, children.length - 1)];
  const isPage = step.element.id === 'main'; // the top of the page, not its first link
  const found =
    successor === undefined || isPage
      ? null
      : successor.matches(focusable)
        ? successor
        : successor.querySelector(focusable);
  return focusElement(found) ?? focusElement(step.element);
};

/** Focuses an element, also one that the Tab key does not reach; undefined if it cannot be. */
const focusElement = (element: Element | null): Element | undefined => {
  if (!(element instanceof HTMLElement)) return undefined;
  if (!element.matches(focusable)) element.tabIndex = -1;
  element.focus({ preventScroll: true });
  return element.ownerDocument.activeElement === element ? element : undefined;
};
