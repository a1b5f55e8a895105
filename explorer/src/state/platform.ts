// The parts of a window that a session uses.

/** The parts of a window that the session uses. */
export type Platform = Pick<
  Window,
  'location' | 'history' | 'sessionStorage' | 'localStorage' | 'fetch' | 'addEventListener'
> & { readonly BroadcastChannel?: typeof BroadcastChannel | undefined };
