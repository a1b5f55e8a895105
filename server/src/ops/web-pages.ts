// Keeps web pages from the private listener: those of another origin, and those whose owner points a name of theirs at this machine (DNS rebinding),
// which browsers take for the page's own origin (D249).
import type { IncomingHttpHeaders } from 'node:http';
import { isIP } from 'node:net';

/** Why a request is rejected. */
export type PageRefusal = { readonly code: 'forbidden' | 'unknown_host'; readonly message: string };

/** Names that no public name server can point at this machine, and addresses, which are none. */
const isLocal = (host: string): boolean =>
  isIP(host.replace(/^\[|\]$/g, '')) !== 0 || !host.includes('.') || /\.(?:internal|local|localhost)$/.test(host);

/** Looks at the headers of a request; `names` are the other names that the listener is reached by. Undefined lets it in. */
export const createPageCheck = (names: readonly string[]) => {
  const known = new Set(names.map((name) => name.toLowerCase()));
  return (headers: IncomingHttpHeaders): PageRefusal | undefined => {
    const site = headers['sec-fetch-site'];
    if (headers.origin !== undefined || (site !== undefined && site !== 'none')) {
      const message =
        'Web pages cannot use the private listener. Use a program that sends no Origin header, or enter the address in the browser yourself.';
      return { code: 'forbidden', message };
    }
    const host = (headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
    if (isLocal(host) || known.has(host)) return undefined;
    return {
      code: 'unknown_host',
      message: `The private listener does not answer for the host ${host.slice(0, 253)}. Use an IP address or a local name, or add it to the setting opsHosts.`,
    };
  };
};
