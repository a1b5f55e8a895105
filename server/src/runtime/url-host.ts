// Owns how a host is written in a URL: an IPv6 address stands in brackets.

/** The host as it stands before the port. */
export const urlHost = (host: string): string => (host.includes(':') ? `[${host}]` : host);
