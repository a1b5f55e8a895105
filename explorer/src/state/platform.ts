// Credentials, and the parts of a window that a session uses.

export type Credentials = { readonly userId: string; readonly secret: string };

/** The parts of a window that the session uses. */
export type Platform = Pick<Window, 'location' | 'history' | 'sessionStorage' | 'fetch' | 'addEventListener'>;
