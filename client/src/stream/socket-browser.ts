// No WebSocket transport in browsers: their WebSockets cannot send the signature headers, so streams use server-sent events.
import type { Transport } from './transport.ts';

export const loadSockets = async (): Promise<Transport | undefined> => undefined;

/** Browsers send their own User-Agent; another would need CORS permission from the server. */
export const sendsUserAgent = false;
