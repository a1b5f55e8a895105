// URLs as text: brackets around an IPv6 host, passwords hidden.
/** The host as it stands before the port. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);

/** The address with `***` for its password; anything else as it is. */
export const hidePassword = (url: string): string =>
  url.replace(/^([a-z]+:\/\/[^:@/?]*):[^?]*@/, '$1:***@').replace(/([?&](?:ssl)?password=)[^&]*/gi, '$1***');
