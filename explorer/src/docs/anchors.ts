// Moves to the section that the address names: when the page opens, when a link is followed, and by Back and Forward. The document is
// loaded after the page, too late for the browser to do it.

const anchorOf = ({ hash }: Location): string => hash.slice(1); // anchors need no encoding

const sectionOf = ({ document, location }: Window): HTMLElement | null => document.getElementById(anchorOf(location));

const reveal = (window: Window): void => {
  const section = sectionOf(window);
  section?.scrollIntoView();
  section?.focus({ preventScroll: true });
};

/** The section that the address names, if the page does not have it. */
export const missingAnchor = (window: Window): string | undefined =>
  window.location.hash === '' || sectionOf(window) !== null ? undefined : anchorOf(window.location);

/** Follows the address until the returned function is called. Back leads to where the page was left. Calls `onMove` when it names another section. */
export function followAnchors(window: Window, onMove: () => void): () => void {
  const { location, history } = window;
  const { scrollY } = Object(history.state) as { readonly scrollY?: unknown }; // may be another script's; checked below
  if (typeof scrollY === 'number') window.scrollTo(0, scrollY);
  else if (location.hash !== '') reveal(window);
  onMove();
  let frame = 0;
  const follow = (): void => {
    onMove();
    if (location.hash === '') return;
    // After the router, which scrolls on the next frame.
    window.cancelAnimationFrame(frame);
    frame = window.requestAnimationFrame(() => {
      frame = window.requestAnimationFrame(() => reveal(window));
    });
  };
  window.addEventListener('popstate', follow);
  return () => {
    window.cancelAnimationFrame(frame);
    window.removeEventListener('popstate', follow);
  };
}

/** As a click on a link to the section. */
export function goToAnchor(window: Window, anchor: string): void {
  if (anchorOf(window.location) === anchor) reveal(window);
  else window.location.hash = anchor;
}
