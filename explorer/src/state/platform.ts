// What a session is made of: credentials, and the parts of a window that it uses.

export type Credentials = { readonly userId: string; readonly secret: string };

/** What the session needs of a window. */
export type Platform = Pick<Window, 'location' | 'history' | 'sessionStorage' | 'fetch' | 'addEventListener'>;
