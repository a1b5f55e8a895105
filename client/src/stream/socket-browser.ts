// Owns the WebSocket of browsers: none. Theirs cannot carry the headers that sign a request, so streams use Server-Sent Events.
import type { Transport } from './transport.ts';

export const loadSockets = async (): Promise<Transport | undefined> => undefined;

/** Browsers name themselves; another name would need the permission of the server. */
export const sendsUserAgent = false;
