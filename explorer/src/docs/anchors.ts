// Moves to the section that the address names: when the page opens, when a link is followed, and by Back and Forward. The document is
// loaded after the page, too late for the browser to do it.

const reveal = (window: Window, anchor: string): void => {
  const section = window.document.getElementById(anchor);
  if (section === null) return;
  section.scrollIntoView();
  section.focus({ preventScroll: true });
};

const anchorOf = ({ hash }: Location): string => hash.slice(1); // anchors need no encoding

/** Follows the address until the returned function is called. Back leads to where the page was left. */
export const followAnchors = (window: Window): (() => void) => {
  const { location, history } = window;
  const { scrollY } = Object(history.state) as { readonly scrollY?: unknown }; // may be another script's; checked below
  if (typeof scrollY === 'number') window.scrollTo(0, scrollY);
  else if (location.hash !== '') reveal(window, anchorOf(location));
  let frame = 0;
  const follow = (): void => {
    if (location.hash === '') return;
    // After the router, which scrolls on the next frame.
    window.cancelAnimationFrame(frame);
    frame = window.requestAnimationFrame(() => {
      frame = window.requestAnimationFrame(() => reveal(window, anchorOf(location)));
    });
  };
  window.addEventListener('popstate', follow);
  return () => {
    window.cancelAnimationFrame(frame);
    window.removeEventListener('popstate', follow);
  };
};

/** As a click on a link to the section. */
export const goToAnchor = (window: Window, anchor: string): void => {
  if (anchorOf(window.location) === anchor) reveal(window, anchor);
  else window.location.hash = anchor;
};
